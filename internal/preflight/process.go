package preflight

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Process is what the command line and the environment of a running ZooKeeper say.
type Process struct {
	Flags  []string  // its -D flags; their values may contain blanks
	Config string    // the zoo.cfg that it has read
	Hidden []Finding // where it may have further flags that could not be read
}

// zookeeperMain begins the name of the class of a ZooKeeper server.
const zookeeperMain = "org.apache.zookeeper."

// The environment variables with further flags of Java. Flags of the command line take precedence over the first two, and
// those of the last one over the command line.
const (
	toolOptions = "JAVA_TOOL_OPTIONS"
	jdkOptions  = "JDK_JAVA_OPTIONS"
	lateOptions = "_JAVA_OPTIONS"
)

// ReadProcess reads the command line and the environment of a process, as Linux shows them in /proc.
func ReadProcess(proc string, pid int) (*Process, error) {
	dir := filepath.Join(proc, fmt.Sprint(pid))
	text, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return nil, err
	}
	words := strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
	class := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, zookeeperMain) })
	if i := slices.IndexFunc(words, argumentFile); class < 0 && i >= 0 {
		return nil, fmt.Errorf("process %d has arguments in a file (%s), which is not read: give its -D flags with --jvm-flags in place of --pid", pid, words[i])
	}
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
	vars, err := environOf(dir)
	if err != nil {
		p.Hidden = append(p.Hidden, Finding{Unseen, "--pid", fmt.Sprintf("the environment of process %d cannot be read: %v", pid, err),
			fmt.Sprintf("flags of Java in %s, %s and %s are not known", toolOptions, jdkOptions, lateOptions),
			"run this command as the user that runs ZooKeeper, or give all its -D flags with --jvm-flags in place of --pid"})
	}
	java := slices.Concat(splitOptions(vars[toolOptions]), splitOptions(vars[jdkOptions]), words[1:class], splitOptions(vars[lateOptions]))
	for _, word := range java {
		switch {
		case argumentFile(word):
			p.Hidden = append(p.Hidden, Finding{Unseen, word, fmt.Sprintf("process %d has arguments in this file, which was not examined", pid),
				"they may be flags that have an effect in Bellwether", "give all -D flags of the process with --jvm-flags in place of --pid"})
		case strings.HasPrefix(word, "-D"):
			p.Flags = append(p.Flags, word)
		}
	}
	return p, nil
}

// argumentFile reports whether an argument of Java names a file with further arguments.
func argumentFile(word string) bool {
	return strings.HasPrefix(word, "@") && !strings.HasPrefix(word, "@@") || strings.HasPrefix(word, "-XX:VMOptionsFile=")
}

// environOf reads the environment of a process.
func environOf(dir string) (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "environ"))
	if err != nil {
		return nil, err
	}
	vars := map[string]string{}
	for word := range strings.SplitSeq(string(text), "\x00") {
		name, value, _ := strings.Cut(word, "=")
		vars[name] = value
	}
	return vars, nil
}

// splitOptions splits the value of a variable with flags as Java does: at blanks that are not between single or double
// quotes. There is no other way to escape a character.
func splitOptions(text string) []string {
	var all []string
	var word []byte
	quote := byte(0)
	started := false
	for _, c := range []byte(text) {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, started = c, true
		case quote == 0 && strings.IndexByte(" \t\n\v\f\r", c) >= 0:
			if started {
				all = append(all, string(word))
			}
			word, started = nil, false
		default:
			word, started = append(word, c), true
		}
	}
	if started {
		all = append(all, string(word))
	}
	return all
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
