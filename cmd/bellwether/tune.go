package main

import (
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime/debug"
	"strings"
	"syscall"

	"bellwether/internal/config"
	"bellwether/internal/server"
)

// gcPercent is how much the heap may grow before a garbage collection, in percent of the live memory. Go's
// default is twice as much. Most of the live memory is the tree, which lives long, so the lower value costs
// little time and saves memory when the tree is large.
const gcPercent = 50

// ballast is memory that is never touched, so that it takes no physical memory, but counts as live. Without it,
// a small server would collect garbage hundreds of times a second under load. It hardly affects a large server.
// The ballast is small because a larger one lets more garbage grow between two collections. When a process is
// killed, the system first frees the memory that the process has touched, at about 0.1 ms for each MiB, and ends
// its connections only after that. Only then do other servers learn that the leader is gone.
//
// It is a Builder because a Builder's memory is not cleared. A slice is cleared, and so touched, if a part of its memory
// was in use before.
var ballast strings.Builder

// ballastBytes is the length of the ballast.
const ballastBytes = 16 << 20

// memoryShare is the share of the machine's or the container's memory, in percent, up to which the heap grows without further
// garbage collections. Otherwise the system would kill a server whose live data fit: all servers of the ensemble at about
// the same time, since they hold the same tree.
const memoryShare = 85

// tuneMemory sets the values of the garbage collector, unless the operator has set them in the environment.
func tuneMemory() {
	if most := server.MemoryMax(); most > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(most / 100 * memoryShare)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
		ballast.Grow(ballastBytes)
	}
}

// warnDescriptors logs a warning if the limit of open files is lower than the number of connections that the
// configuration allows.
func warnDescriptors(log *slog.Logger, c *config.Config) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		log.Warn("the limit of open files cannot be read", "err", err)
		return
	}
	want := uint64(c.Limits.Cnxns)
	if c.Limits.Cnxns <= 0 {
		want = connectionsUsual
	}
	files := min(limit.Cur, math.MaxInt64)
	if beside := uint64(server.DescriptorsBeside(int64(files))); files < want+beside {
		log.Warn("limit of open files is lower than the connections that the configuration allows: raise it (ulimit -n, LimitNOFILE=), or lower maxCnxns",
			"limit", files, "wanted", want+beside, "maxCnxns", c.Limits.Cnxns)
	}
}

// connectionsUsual is the number of connections that warnDescriptors assumes if maxCnxns is unlimited.
const connectionsUsual = 10_000

// fileSizeWarning returns a warning if the limit of file size is lower than the space that each log reserves;
// empty: it is not.
func fileSizeWarning(c *config.Config) string {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return fmt.Sprintf("the limit of file size cannot be read: %v", err)
	}
	if limit.Cur >= uint64(c.Storage.PreAllocBytes) {
		return ""
	}
	return fmt.Sprintf("limit of file size is %d bytes, lower than preAllocSize, %d bytes: the first write would end the server; "+
		"raise it (ulimit -f, LimitFSIZE=), or set preAllocSize and txnLogSizeLimitInKb so that their sum is below it", limit.Cur, c.Storage.PreAllocBytes)
}
