package target

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// WallClock changes the wall clock of a single running process. The process's monotonic
// clock and all other processes are not affected.
//
// Programs read the time through the vDSO, a page of code that the kernel maps into each
// process. This includes Go programs, which use no C library that could be replaced by
// preloading. WallClock replaces the function clock_gettime in the process's copy of that
// page by one that calls the kernel and adds a number of seconds to CLOCK_REALTIME. It does
// not affect kernel timers (none of the programs has one on the wall clock), nor
// gettimeofday and time, which neither Go nor Java's currentTimeMillis uses.
type WallClock struct {
	mem  *os.File // the process's memory
	cell int64    // the address of the seconds that are added
	set  time.Duration
}

// skewed is clock_gettime for x86-64, followed by the seconds to add.
var skewed = []byte{
	0xb8, 228, 0, 0, 0, // mov   eax, 228 (clock_gettime)
	0x0f, 0x05, //         syscall
	0x85, 0xff, //         test  edi, edi (CLOCK_REALTIME?)
	0x75, 0x0a, //         jnz   to ret
	0x48, 0x8b, 0x0d, 6, 0, 0, 0, // mov rcx, [cell]
	0x48, 0x01, 0x0e, //   add   [rsi], rcx
	0xc3,       //         ret
	0x90, 0x90, // the cell begins at a multiple of 8
	0, 0, 0, 0, 0, 0, 0, 0,
}

const (
	skewCell = 24  // offset of the seconds in skewed
	stopsMax = 100 // attempts to stop a process outside of clock_gettime
)

// WallClockOf takes control of the wall clock of a child process and stops the process for
// a moment. It must be called again after a restart of the process.
func WallClockOf(t testing.TB, pid int) *WallClock {
	t.Helper()
	w, err := holdWallClock(pid)
	if err != nil {
		t.Fatalf("the wall clock of process %d cannot be set: %v", pid, err)
	}
	t.Cleanup(func() { w.mem.Close() })
	return w
}

// Jump moves the clock forwards or backwards by whole seconds.
func (w *WallClock) Jump(t testing.TB, by time.Duration) {
	t.Helper()
	w.set += by
	cell := binary.LittleEndian.AppendUint64(nil, uint64(int64(w.set/time.Second)))
	if _, err := w.mem.WriteAt(cell, w.cell); err != nil {
		t.Fatal(err)
	}
}

func holdWallClock(pid int) (*WallClock, error) {
	if runtime.GOARCH != "amd64" {
		return nil, errors.New("this needs an x86-64 machine, not " + runtime.GOARCH)
	}
	mem, err := os.OpenFile(procFile(pid, "mem"), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	at, size, err := findClock(pid, mem)
	if err == nil {
		err = replaceClock(pid, mem, at, size)
	}
	if err != nil {
		mem.Close()
		return nil, err
	}
	return &WallClock{mem: mem, cell: at + skewCell}, nil
}

// findClock returns the address and size of clock_gettime in the process.
func findClock(pid int, mem *os.File) (at, size int64, err error) {
	begin, end, err := findVDSO(pid)
	if err != nil {
		return 0, 0, err
	}
	image := make([]byte, end-begin)
	if _, err := mem.ReadAt(image, begin); err != nil {
		return 0, 0, err
	}
	file, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, 0, err
	}
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return 0, 0, err
	}
	for _, s := range symbols {
		if s.Name == "__vdso_clock_gettime" && s.Size >= uint64(len(skewed)) && s.Value%8 == 0 {
			return begin + int64(s.Value), int64(s.Size), nil
		}
	}
	return 0, 0, errors.New("the vDSO of the process has no suitable clock_gettime")
}

// findVDSO finds the vDSO in the list of mappings. It may need several attempts, because the
// list is not read atomically and can lack a line while the process maps memory.
func findVDSO(pid int) (begin, end int64, err error) {
	for stop := time.Now().Add(stopTimeout); time.Now().Before(stop); <-time.After(pollInterval) {
		maps, err := os.ReadFile(procFile(pid, "maps"))
		if err != nil {
			return 0, 0, err
		}
		for line := range strings.Lines(string(maps)) {
			if strings.HasSuffix(line, "[vdso]\n") {
				_, err := fmt.Sscanf(line, "%x-%x ", &begin, &end)
				return begin, end, err
			}
		}
	}
	return 0, 0, errors.New("the process has no vDSO")
}

// replaceClock overwrites clock_gettime at a moment when no thread is inside it.
func replaceClock(pid int, mem *os.File, at, size int64) error {
	for range stopsMax {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return err
		}
		within, err := stoppedWithin(pid, at, size)
		if err == nil && !within {
			_, err = mem.WriteAt(skewed, at)
		}
		if err := errors.Join(err, syscall.Kill(pid, syscall.SIGCONT)); err != nil || !within {
			return err
		}
	}
	return errors.New("a thread was inside clock_gettime at every attempt")
}

// stoppedWithin waits until all threads have stopped and reports whether one of them is
// between at and at+size.
func stoppedWithin(pid int, at, size int64) (bool, error) {
	for end := time.Now().Add(stopTimeout); time.Now().Before(end); <-time.After(pollInterval) {
		places, err := places(pid)
		if err != nil {
			return false, err
		}
		if slices.Contains(places, 0) {
			continue
		}
		return slices.ContainsFunc(places, func(pc int64) bool { return pc >= at && pc < at+size }), nil
	}
	return false, fmt.Errorf("the process does not stop within %v", stopTimeout)
}

// places returns the address at which each thread will continue; 0 for a running thread.
func places(pid int) ([]int64, error) {
	threads, err := filepath.Glob(procFile(pid, "task/*/syscall"))
	if err != nil {
		return nil, err
	}
	var all []int64
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the process has ended
		}
		if err != nil {
			return nil, err
		}
		var pc int64
		if fields := strings.Fields(string(text)); len(fields) > 1 { // the file contains registers, not the word "running"
			if pc, err = strconv.ParseInt(fields[len(fields)-1], 0, 64); err != nil {
				return nil, err
			}
		}
		all = append(all, pc)
	}
	return all, nil
}

func procFile(pid int, name string) string {
	return filepath.Join("/proc", strconv.Itoa(pid), name)
}
