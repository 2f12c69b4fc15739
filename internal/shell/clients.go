package shell

import (
	"strconv"
	"strings"

	"bellwether/wire"
)

// parseSession reads a session as servers print it.
func parseSession(text string) (wire.SessionID, bool) {
	hex, ok := strings.CutPrefix(text, "0x")
	n, err := strconv.ParseUint(hex, 16, 64)
	return wire.SessionID(n), ok && err == nil && n != 0
}

// parseCons adds the address of each session in an answer to cons.
func parseCons(text string, addresses map[wire.SessionID]string) {
	for line := range strings.Lines(text) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "/")
		from, rest, ok := strings.Cut(line, "(")
		from = from[:max(strings.LastIndexByte(from, '['), 0)] // after an IPv6 address's own
		_, id, found := strings.Cut(rest, "sid=")
		id, _, _ = strings.Cut(id, ",")
		if session, valid := parseSession(id); ok && found && valid {
			addresses[session] = from
		}
	}
}

// parseDump adds each session in the first part of an answer to dump: those
// that the server keeps track of, each in a line of its own.
func parseDump(text string, known map[wire.SessionID]bool) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "ephemeral nodes dump") {
			return
		}
		if fields := strings.Fields(line); len(fields) > 0 {
			if session, ok := parseSession(fields[0]); ok {
				known[session] = true
			}
		}
	}
}
