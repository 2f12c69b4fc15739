package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bellwether/internal/ensemble"
)

// priorityPrefix begins the keys that prefer servers as leaders. priorityMax bounds their values
// on both sides of 0.
const (
	priorityPrefix = "leaderPriority."
	priorityStar   = priorityPrefix + "*"
	priorityMax    = 1000
)

// loadPriorities reads the family leaderPriority.*. It runs after the servers are known.
func (l *loader) loadPriorities() {
	var names []string
	for name, v := range l.settings {
		if v.key.name == priorityStar {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if l.c.Ensemble.Members == nil {
			l.noticeIf(true, name, "has no effect: there are no server lines")
			continue
		}
		l.loadPriority(name)
	}
}

// loadPriority reads the line of one server.
func (l *loader) loadPriority(name string) {
	id, err := strconv.ParseInt(strings.TrimPrefix(name, priorityPrefix), 10, 64)
	server, known := l.c.Ensemble.Members.Server(ensemble.ServerID(id))
	if err != nil || id < 0 || !known && !l.c.Tree.Reconfig {
		l.failKey(name, "names no server of the ensemble", "use the number of a server.N line")
		return
	}
	priority, err := strconv.Atoi(strings.TrimSpace(l.settings[name].value))
	if err != nil || priority < -priorityMax || priority > priorityMax {
		l.failKey(name, "is not a priority", fmt.Sprintf("write a whole number from %d to %d", -priorityMax, priorityMax))
		return
	}
	// A reconfiguration can remove the server and add it again.
	l.noticeIf(!known, name, "has no effect until a reconfiguration adds this server")
	l.noticeIf(known && server.Role == ensemble.Observer, name, "has no effect: an observer never leads")
	if l.c.Ensemble.Priorities == nil {
		l.c.Ensemble.Priorities = map[ensemble.ServerID]int{}
	}
	l.c.Ensemble.Priorities[ensemble.ServerID(id)] = priority
}
