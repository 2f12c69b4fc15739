package bench

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// meter measures the time, and the processor time, of a measurement.
type meter struct {
	setting Setting
	began   time.Time
	client  time.Duration
	servers []time.Duration
	known   bool
}

// begin starts a measurement.
func (s Setting) begin() *meter {
	servers, known := processorOf(s.Servers)
	return &meter{s, time.Now(), ownProcessor(), servers, known}
}

// report returns the report of the measurement, which ends now.
func (m *meter) report(kind string, l *latencies) *Report {
	r := reportOf(kind, time.Since(m.began), l)
	r.Warmup = m.setting.Warmup
	m.charge(r)
	return r
}

// charge records the processor time since the beginning.
func (m *meter) charge(r *Report) {
	r.ClientCPU = ownProcessor() - m.client
	servers, known := processorOf(m.setting.Servers)
	if !known || !m.known {
		return
	}
	r.ServerKnown, r.EachCPU = true, make([]time.Duration, len(servers))
	for i := range servers {
		r.EachCPU[i] = servers[i] - m.servers[i]
		r.ServerCPU += r.EachCPU[i]
	}
	r.ServerMemory, _ = Resident(m.setting.Servers...) // 0: the system does not say
}

// ownProcessor returns the processor time that this process has used.
func ownProcessor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// clockTick is the unit of the times in /proc/PID/stat. Linux uses 100 per second on every
// architecture.
const clockTick = 10 * time.Millisecond

// processorOf returns the processor time that each of these processes has used. It returns false if there
// are none, or if the system does not say it for all.
func processorOf(pids []int) (each []time.Duration, known bool) {
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return nil, false
		}
		// The name, in parentheses, may contain blanks. utime and stime are the 12th and 13th
		// words after it.
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) < 13 {
			return nil, false
		}
		sum := time.Duration(0)
		for _, field := range fields[11:13] {
			ticks, err := strconv.ParseInt(string(field), 10, 64)
			if err != nil {
				return nil, false
			}
			sum += time.Duration(ticks) * clockTick
		}
		each = append(each, sum)
	}
	return each, len(pids) > 0
}

// Resident returns the resident memory of processes on this machine in bytes.
func Resident(pids ...int) (sum int64, err error) {
	for _, pid := range pids {
		n, err := resident(pid)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// resident returns the resident memory of a process in bytes.
func resident(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("the memory of a process is known on Linux only: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kib << 10, err
		}
	}
	return 0, errors.New("/proc does not say how much memory the process uses")
}

// Listeners returns the processes on this machine that listen at TCP ports of loopback
// addresses host:port, on Linux. It leaves out addresses of other machines, and processes that
// this user may not examine.
func Listeners(addresses []string) (pids []int) {
	ports := map[string]bool{}
	for _, address := range addresses {
		host, port, err := net.SplitHostPort(address)
		n, bad := strconv.Atoi(port)
		if ip := net.ParseIP(host); err == nil && bad == nil && (host == "localhost" || ip != nil && ip.IsLoopback()) {
			ports[fmt.Sprintf("%04X", n)] = true
		}
	}
	sockets := listening(ports)
	if len(sockets) == 0 {
		return nil
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, file := range files {
		if to, err := os.Readlink(file); err != nil || !sockets[to] {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(file, "/")[2]); err == nil && !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// stateListen is how /proc/net/tcp shows the state of a socket that listens.
const stateListen = "0A"

// listening returns the sockets that listen at ports, which are given in hex, in the form of
// the links in /proc/PID/fd.
func listening(ports map[string]bool) map[string]bool {
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table) // other systems have none
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != stateListen {
				continue
			}
			if _, port, _ := strings.Cut(f[1], ":"); ports[port] {
				sockets["socket:["+f[9]+"]"] = true
			}
		}
	}
	return sockets
}
