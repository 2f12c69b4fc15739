package preflight

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Process is what the command line of a running ZooKeeper says.
type Process struct {
	Flags  string // its -D flags
	Config string // the zoo.cfg that it has read
}

// zookeeperMain begins the name of the class of a ZooKeeper server.
const zookeeperMain = "org.apache.zookeeper."

// ReadProcess reads the command line of a process, as Linux shows it in /proc.
func ReadProcess(proc string, pid int) (*Process, error) {
	dir := filepath.Join(proc, fmt.Sprint(pid))
	text, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return nil, err
	}
	words := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	class := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, zookeeperMain) })
	if class < 0 || class+1 == len(words) {
		return nil, fmt.Errorf("process %d is no ZooKeeper server with a zoo.cfg: its command line has no class %s… and file", pid, zookeeperMain)
	}
	p := &Process{Config: words[class+1]}
	if !filepath.IsAbs(p.Config) {
		cwd, err := os.Readlink(filepath.Join(dir, "cwd"))
		if err != nil {
			return nil, err
		}
		p.Config = filepath.Join(cwd, p.Config)
	}
	flags := slices.DeleteFunc(words[:class], func(w string) bool {
		return !strings.HasPrefix(w, "-D") || strings.ContainsAny(w, " \t\n")
	})
	p.Flags = strings.Join(flags, " ")
	return p, nil
}

// SameConfig returns a finding if the process has read another file than path.
func (p *Process) SameConfig(path string) []Finding {
	read, err := os.Stat(p.Config)
	if err == nil {
		var given os.FileInfo
		if given, err = os.Stat(path); err == nil && os.SameFile(read, given) {
			return nil
		}
	}
	return []Finding{{Prevents, path, "the running process has read " + p.Config, "another file may have other settings, data and members", "give --config " + p.Config}}
}
