//go:build unix && !linux

package guard

import (
	"errors"
	"syscall"
)

// process is a process that outlives its command. None is found on this system.
type process struct{ pid, parent, group int }

func (p process) String() string { return "" }

var errNotFound = errors.New("this system cannot list the descendants of a command")

// adoptOrphans always fails here: processes that leave the command's process group
// cannot be found.
func adoptOrphans() error { return errNotFound }

func setName(string) {}

// family is empty on this system.
type family struct {
	living  []process
	zombies []int
}

func familyOf(int, []int) (family, error) { return family{}, errNotFound }

func (family) signal(syscall.Signal) {}

func reap([]int) {}
