package guard

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
)

// process is one line of /proc/PID/stat.
type process struct {
	pid, parent, group int
	threads            int
	state              byte
	name               string
}

// String names the process for people, with its state and its user.
func (p process) String() string {
	owner := "unknown"
	if info, err := os.Stat(fmt.Sprint("/proc/", p.pid)); err == nil {
		owner = fmt.Sprint(info.Sys().(*syscall.Stat_t).Uid)
	}
	return fmt.Sprintf("process %d (%s, user %s, state %c)", p.pid, printable(p.name), owner, p.state)
}

// printable is a process's name, which the process chooses itself, in one line.
func printable(name string) string {
	quoted := strconv.Quote(name)
	if quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

// runs reports whether the process can still do something. The first thread of
// a process may have ended before the others: that one looks like a zombie.
func (p process) runs() bool { return p.state != 'X' && (p.state != 'Z' || p.threads > 1) }

// processes lists what /proc shows. It is not a snapshot: a process that
// changes its parent meanwhile can be missing.
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
		if stat, err := os.ReadFile("/proc/" + name + "/stat"); err == nil { // else it has ended
			if p, ok := parseStat(stat); ok {
				all = append(all, p)
			}
		}
	}
	if len(all) == 0 { // this process at least is there
		return nil, fmt.Errorf("/proc shows no processes: %w", os.ErrNotExist)
	}
	return all, nil
}

// parseStat reads /proc/PID/stat: the pid, the name in parentheses, the state
// and numbers. The name can hold anything, parentheses too.
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

// below are the descendants of root among all, but not those in except, nor
// what descends from these.
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
