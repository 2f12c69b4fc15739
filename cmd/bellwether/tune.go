package main

import (
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"

	"bellwether/internal/config"
)

// gcPercent is how far the heap grows, in percent of what is alive, before
// it is collected: half of Go's default. A tree is mostly long-lived, so that
// a lower value costs little time and saves memory where it is large.
const gcPercent = 50

// ballast is memory that is never touched, so that it costs none, and counts
// as alive. So the collector leaves a small server at least half of it to fill
// (it would otherwise collect hundreds of times a second under load), and a
// large one is hardly affected. What is filled is paid for when the process is
// killed: the system takes back its memory, about 0.1 ms for each MiB, before
// it ends its connections, and only then do others know that a leader is gone.
var ballast []byte

// ballastBytes is the length of the ballast.
const ballastBytes = 16 << 20

// tuneMemory sets the collector's pace unless the operator has.
func tuneMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
		ballast = make([]byte, ballastBytes)
		runtime.KeepAlive(ballast)
	}
}

// descriptorsBeside is what a server needs besides its clients' connections:
// files, ports, and room for what is being closed.
const descriptorsBeside = 64

// warnDescriptors tells when the limit of open files is below what the
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

// connectionsUsual stands in for maxCnxns where it is unlimited.
const connectionsUsual = 10_000
