package guard

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
)

// process is a process as /proc/PID/stat shows it.
type process struct {
	pid, parent, group int
	threads            int
	state              byte
	name               string
}

// String describes the process for users, with its state and its user.
func (p process) String() string {
	owner := "unknown"
	if info, err := os.Stat(fmt.Sprint("/proc/", p.pid)); err == nil {
		owner = fmt.Sprint(info.Sys().(*syscall.Stat_t).Uid)
	}
	return fmt.Sprintf("process %d (%s, user %s, state %c)", p.pid, printable(p.name), owner, p.state)
}

// printable returns a process's name in one line: processes choose their names freely.
func printable(name string) string {
	quoted := strconv.Quote(name)
	if quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

// runs reports whether the process still has a running thread. A process whose first
// thread has ended before the others looks like a zombie.
func (p process) runs() bool { return p.state != 'X' && (p.state != 'Z' || p.threads > 1) }

// processes lists the processes in /proc. The list is not a snapshot: a process whose
// parent changes meanwhile can be missing.
func processes() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	all := make([]process, 0, len(names))
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		if stat, err := os.ReadFile("/proc/" + name + "/stat"); err == nil { // an error means that the process has ended
			if p, ok := parseStat(stat); ok {
				all = append(all, p)
			}
		}
	}
	if len(all) == 0 { // the list must contain at least this process
		return nil, fmt.Errorf("/proc shows no processes: %w", os.ErrNotExist)
	}
	return all, nil
}

// parseStat parses /proc/PID/stat: the pid, the name in parentheses, the state
// and numbers. The name may contain any characters, parentheses included.
func parseStat(stat []byte) (p process, ok bool) {
	open, shut := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if open < 1 || shut < open {
		return p, false
	}
	fields := bytes.Fields(stat[shut+1:])
	if len(fields) < 18 {
		return p, false
	}
	p.name, p.state = string(stat[open+1:shut]), fields[0][0]
	numbers := [][]byte{bytes.TrimSpace(stat[:open]), fields[1], fields[2], fields[17]}
	for i, to := range []*int{&p.pid, &p.parent, &p.group, &p.threads} {
		n, err := strconv.Atoi(string(numbers[i]))
		if err != nil {
			return p, false
		}
		*to = n
	}
	return p, true
}

// below returns the descendants of root, except the processes in except and their
// descendants.
func below(all []process, root int, except []int) []process {
	children := map[int][]process{}
	for _, p := range all {
		if p.pid != root && !slices.Contains(except, p.pid) {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	var found []process
	for next := children[root]; len(next) > 0; next = next[1:] {
		found = append(found, next[0])
		next = append(next, children[next[0].pid]...)
	}
	return found
}
