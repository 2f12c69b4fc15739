package shell

import (
	"os"

	"golang.org/x/sys/unix"
)

// whenUnread calls do when the reader of the pipe f has closed it; a program that does not
// write would not notice that otherwise. whenUnread watches a copy of the descriptor, so the
// caller may close f meanwhile. The caller must call stop; after it has returned, do is not
// called.
func whenUnread(f *os.File, do func()) (stop func()) {
	r, w, err := os.Pipe() // closing w wakes the goroutine
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
