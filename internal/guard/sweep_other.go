//go:build unix && !linux

package guard

import (
	"errors"
	"syscall"
)

// process is a process that outlives its command: none is found on this system.
type process struct{ pid, parent, group int }

func (p process) String() string { return "" }

var errNotFound = errors.New("this system does not tell which processes descend from a command")

// adoptOrphans is not possible here: what leaves the command's process group
// is out of reach.
func adoptOrphans() error { return errNotFound }

func setName(string) {}

// family is empty on this system.
type family struct {
	living  []process
	zombies bool
}

func familyOf(int, []int) (family, error) { return family{}, errNotFound }

func (family) signal(syscall.Signal) {}

func reap([]int) {}
