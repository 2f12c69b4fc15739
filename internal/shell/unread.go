package shell

import (
	"os"

	"golang.org/x/sys/unix"
)

// whenUnread calls do when the reader of the pipe f is gone. A program that has
// nothing to write would not notice that otherwise. It watches a descriptor of its
// own, so that the caller may close f meanwhile. The caller must call stop, which
// waits until do is not called any more.
func whenUnread(f *os.File, do func()) (stop func()) {
	r, w, err := os.Pipe() // its end wakes the goroutine
	if err != nil {
		return func() {}
	}
	watched, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		r.Close()
		w.Close()
		return func() {}
	}
	fds := []unix.PollFd{{Fd: int32(watched)}, {Fd: int32(r.Fd())}}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for err := error(unix.EINTR); err == unix.EINTR; {
			_, err = unix.Poll(fds, -1)
		}
		if fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
			do()
		}
	}()
	return func() {
		w.Close()
		<-over
		r.Close()
		unix.Close(watched)
	}
}
