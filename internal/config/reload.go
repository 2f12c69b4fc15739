package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"bellwether/internal/ensemble"
)

// Changes names the keys whose values have changed, and the families of keys, such as ssl.*, whose certificate
// files have changed. Reloaded leaves Renewed and Refused empty, because it reads no certificate file.
type Changes struct {
	Taken   []string // took effect, in order of the table
	Restart []string // take effect after a restart, in order of the table, then server lines
	Renewed []string // families whose new certificates are in use
	Refused []string // families whose new certificates cannot be used, so that the old ones stay in use
}

// String lists the keys that took effect, those that need a restart, and the certificates that were replaced or refused.
func (c Changes) String() string {
	var parts []string
	if len(c.Taken) > 0 {
		parts = append(parts, "took effect: "+strings.Join(c.Taken, ", "))
	}
	if len(c.Restart) > 0 {
		parts = append(parts, "need a restart: "+strings.Join(c.Restart, ", "))
	}
	if len(parts) == 0 {
		parts = append(parts, "no key has changed")
	}
	if len(c.Renewed) > 0 {
		parts = append(parts, "new certificates are in use: "+strings.Join(c.Renewed, ", "))
	}
	if len(c.Refused) > 0 {
		parts = append(parts, "certificates are refused, and the old ones stay in use: "+strings.Join(c.Refused, ", "))
	}
	return strings.Join(parts, "; ")
}

// Reloaded returns the configuration of a server that runs with c and then reads next:
// live keys have the values of next, all others those of c. Changes names the keys whose
// values differ and that one of the two gives explicitly.
func (c *Config) Reloaded(next *Config) (*Config, Changes) {
	now := *c
	now.given = map[string]string{}
	maps.Copy(now.given, c.given)
	var changes Changes
	for _, s := range table {
		for i := range s.keys {
			k := &s.keys[i]
			if k.tls {
				if c.given[k.name] != next.given[k.name] {
					changes.Restart = append(changes.Restart, k.name)
				}
				continue
			}
			if k.into == nil {
				continue
			}
			_, before := c.given[k.name]
			text, after := next.given[k.name]
			is, wanted := reflect.ValueOf(k.into(c)).Elem(), reflect.ValueOf(k.into(next)).Elem()
			differs := (before || after) && !reflect.DeepEqual(is.Interface(), wanted.Interface())
			switch {
			case k.live:
				reflect.ValueOf(k.into(&now)).Elem().Set(wanted)
				if after {
					now.given[k.name] = text
				}
				if differs {
					changes.Taken = append(changes.Taken, k.name)
				}
			case differs && k.status != ignored:
				changes.Restart = append(changes.Restart, k.name)
			}
		}
	}
	changes.Restart = append(changes.Restart, memberChanges(c.given, next.given)...)
	return &now, changes
}

// memberChanges returns the server, group, weight and leaderPriority lines that were added,
// removed or changed, and myid if it was.
func memberChanges(before, after map[string]string) []string {
	var names []string
	for _, given := range []map[string]string{before, after} {
		for name := range given {
			about := name == idFile || ensemble.IsMemberKey(name) || strings.HasPrefix(name, priorityPrefix)
			if about && before[name] != after[name] && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// WithMembers returns the configuration with another membership, and with the client
// address of this server's line in it. file is the dynamic file that holds the membership,
// which the static file names from then on; empty: there is none.
func (c *Config) WithMembers(m *ensemble.Membership, file string) *Config {
	now := *c
	now.Ensemble.Members = m
	if file != "" {
		now.Ensemble.DynamicFile = file
	}
	if self, ok := m.Server(c.Ensemble.ID); ok {
		now.Ensemble.PeerType = self.Role
		if !self.Client.IsZero() {
			now.Client = self.Client
		}
	}
	now.given = map[string]string{}
	for key, value := range c.given {
		if !ensemble.IsMemberKey(key) {
			now.given[key] = value
		}
	}
	for line := range strings.SplitSeq(m.FileText(false), "\n") {
		key, value, _ := strings.Cut(line, "=")
		now.given[key] = value
	}
	return &now
}
