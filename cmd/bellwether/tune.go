package main

import (
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"

	"bellwether/internal/config"
)

// gcPercent is how far the heap grows before it is collected, in percent of the live
// memory: half of Go's default. A tree is mostly long-lived, so a lower value costs
// little time, and saves memory when the tree is large.
const gcPercent = 50

// ballast is memory that is never touched, so that it costs nothing, but counts as live.
// So the collector lets a small server fill at least half of it (otherwise it would
// collect hundreds of times a second under load), and hardly affects a large one. Memory
// that was filled costs time when the process is killed: the system frees it, at about
// 0.1 ms for each MiB, before it ends the connections, and only then do others learn
// that a leader is gone.
var ballast []byte

// ballastBytes is the length of the ballast.
const ballastBytes = 16 << 20

// tuneMemory sets the collector's pace unless the operator has set it.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
		ballast = make([]byte, ballastBytes)
		runtime.KeepAlive(ballast)
	}
}

// descriptorsBeside is how many descriptors a server needs besides its clients'
// connections: files, ports, and connections that are being closed.
const descriptorsBeside = 64

// warnDescriptors logs a warning if the limit of open files is below what the
// configuration lets clients use.
func warnDescriptors(log *slog.Logger, c *config.Config) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		log.Warn("limit of open files is not known", "err", err)
		return
	}
	want := uint64(c.Limits.Cnxns)
	if c.Limits.Cnxns <= 0 {
		want = connectionsUsual
	}
	if limit.Cur < want+descriptorsBeside {
		log.Warn("limit of open files is lower than the connections that the configuration allows: raise it (ulimit -n, LimitNOFILE=), or lower maxCnxns",
			"limit", limit.Cur, "wanted", want+descriptorsBeside, "maxCnxns", c.Limits.Cnxns)
	}
}

// connectionsUsual replaces maxCnxns if that is unlimited.
const connectionsUsual = 10_000
