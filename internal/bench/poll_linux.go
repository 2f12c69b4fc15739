package bench

import (
	"errors"
	"net"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pollsMany reports whether one poller can wait for all of the lines.
func pollsMany(lines []*line) bool {
	for _, l := range lines {
		if _, ok := l.conn.(*net.TCPConn); !ok {
			return false
		}
	}
	return true
}

// newPoller returns a poller for lines.
func newPoller(lines []*line) (poller, error) {
	if !pollsMany(lines) {
		return lone{lines[0]}, nil
	}
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	p := &epoll{fd: fd, lines: lines, events: make([]unix.EpollEvent, min(len(lines), eventsMax)), index: map[*line]int32{}}
	for i, l := range lines {
		if err := l.detach(); err != nil {
			p.close()
			return nil, err
		}
		p.index[l] = int32(i)
		if err := p.control(unix.EPOLL_CTL_ADD, l, unix.EPOLLIN); err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

// eventsMax is how many lines one call of wait handles.
const eventsMax = 256

// epoll waits for many lines with one system call. Go's runtime does not wait for them: that
// would cost a second such call, and a change of goroutines, for each reply.
type epoll struct {
	fd     int
	lines  []*line
	index  map[*line]int32
	events []unix.EpollEvent
}

func (p *epoll) control(op int, l *line, events uint32) error {
	return unix.EpollCtl(p.fd, op, int(l.stream.(socket)), &unix.EpollEvent{Events: events, Fd: p.index[l]})
}

func (p *epoll) wantToSend(l *line, want bool) error {
	events := uint32(unix.EPOLLIN)
	if want {
		events |= unix.EPOLLOUT
	}
	return p.control(unix.EPOLL_CTL_MOD, l, events)
}

func (p *epoll) wait(until time.Time, f func(*line) error) error {
	n, err := p.poll(max(time.Until(until), 0))
	if err != nil && !errors.Is(err, unix.EINTR) {
		return err
	}
	for _, e := range p.events[:max(n, 0)] {
		if err := f(p.lines[e.Fd]); err != nil {
			return err
		}
	}
	return nil
}

// poll waits for events. epoll_wait knows only milliseconds; kernels before Linux 5.11 have nothing better.
func (p *epoll) poll(limit time.Duration) (int, error) {
	t := unix.NsecToTimespec(limit.Nanoseconds())
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), uintptr(unsafe.Pointer(&p.events[0])), uintptr(len(p.events)), uintptr(unsafe.Pointer(&t)), 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case unix.ENOSYS:
		return unix.EpollWait(p.fd, p.events, int(limit.Milliseconds()))
	}
	return 0, errno
}

func (p *epoll) close() { unix.Close(p.fd) }

// detach takes the connection away from Go's runtime.
func (l *line) detach() error {
	raw, err := l.conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	var fd int
	var failed error
	if err := raw.Control(func(number uintptr) { fd, failed = unix.FcntlInt(number, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	l.conn.Close() // the duplicate keeps the connection
	l.conn, l.stream = nil, socket(fd)
	return nil
}

// socket is a connection whose calls do not block.
type socket int

func (s socket) Read(b []byte) (int, error)  { return unix.Read(int(s), b) }
func (s socket) Write(b []byte) (int, error) { return unix.Write(int(s), b) }
func (s socket) Close() error                { return unix.Close(int(s)) }
