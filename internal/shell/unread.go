package shell

import (
	"os"

	"golang.org/x/sys/unix"
)

// whenUnread calls do when nobody reads any more what is written to f, a pipe: who has
// nothing to write would not notice. Its end is waited for by stop, which is to be called.
func whenUnread(f *os.File, do func()) (stop func()) {
	r, w, err := os.Pipe() // by whose end the wait is ended
	if err != nil {
		return func() {}
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		fds := []unix.PollFd{{Fd: int32(f.Fd())}, {Fd: int32(r.Fd())}}
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
	}
}
