package guard

import (
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes this process the parent of every descendant that loses its own
// parent. A process that leaves the command's group, by setsid or as a daemon, thus
// stays a descendant of this process and can be found.
func adoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// setName gives this process the name that ps and killall show.
func setName(name string) { os.WriteFile("/proc/self/comm", []byte(name), 0) } // ignores errors: without /proc nobody sees the name

// family holds the descendants of a process.
type family struct {
	living  []process
	zombies []int        // pids of those that have ended and are not reaped yet, in order
	shared  map[int]bool // process groups that also have other members
}

// familyOf finds the descendants of root, except the processes in except and their
// descendants.
func familyOf(root int, except []int) (f family, err error) {
	all, err := processes()
	if err != nil {
		return f, err
	}
	found := below(all, root, except)
	ours := map[int]bool{}
	for _, p := range found {
		ours[p.pid] = true
		if p.runs() {
			f.living = append(f.living, p)
		} else {
			f.zombies = append(f.zombies, p.pid)
		}
	}
	slices.Sort(f.zombies)
	f.shared = map[int]bool{}
	for _, p := range all {
		// A process whose parent is missing lost it while /proc was read: it may be a descendant.
		known := func(o process) bool { return o.pid == p.parent }
		if !ours[p.pid] && (p.parent == 0 || slices.ContainsFunc(all, known)) {
			f.shared[p.group] = true
		}
	}
	return f, nil
}

// signal sends a signal to all living processes. A group without other members gets
// it as a whole, so that its members cannot escape by forking.
func (f family) signal(s syscall.Signal) {
	done := map[int]bool{}
	for _, p := range f.living {
		switch {
		case p.group <= 1 || f.shared[p.group]: // 0: the group of another PID namespace
			syscall.Kill(p.pid, s)
		case !done[p.group]:
			done[p.group] = true
			syscall.Kill(-p.group, s)
		}
	}
}

// reap collects the exit statuses of ended children, except those in except.
func reap(except []int) {
	all, err := processes()
	if err != nil {
		return
	}
	self := os.Getpid()
	for _, p := range all {
		if p.parent == self && !p.runs() && !slices.Contains(except, p.pid) {
			unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
		}
	}
}
