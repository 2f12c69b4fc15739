package preflight

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"bellwether/internal/config"
)

// refusesStart is the reason of a finding without which a server would not start.
const refusesStart = "Bellwether would refuse to start with it"

// Settings returns what [config.Examine] says about a zoo.cfg and its flags: c and err are its results.
func Settings(c *config.Config, err error) []Finding {
	var all []Finding
	for _, err := range Separate(err) {
		all = append(all, refused(err))
	}
	if c == nil {
		return all
	}
	for _, n := range c.Warnings {
		all = append(all, noted(n))
	}
	for _, n := range c.Notices {
		all = append(all, noted(n))
	}
	return append(all, membership(c)...)
}

// Separate returns the errors that err joins.
func Separate(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, err := range joined.Unwrap() {
		all = append(all, Separate(err)...)
	}
	return all
}

// refused returns the finding for an error with which a server would not start.
func refused(err error) Finding {
	bad := (*config.Error)(nil)
	if !errors.As(err, &bad) {
		return Finding{Prevents, "start", err.Error(), refusesStart, ""}
	}
	what := strings.TrimSpace(assignment(bad.Key, bad.Value) + " " + bad.Problem)
	if bad.Allowed != "" {
		what += "; allowed is " + bad.Allowed
	}
	return Finding{Prevents, at(bad.File, bad.Line), what, refusesStart, bad.Remedy}
}

// noted returns the finding for a remark with which a server would start.
func noted(n config.Notice) Finding {
	f := Finding{Severity: Warns, Where: cmp.Or(at(n.File, n.Line), "start"), What: strings.TrimSpace(n.Key + " " + n.Text)}
	if n.RefusesClients {
		f.Severity, f.Why = Prevents, "these clients would be refused after the takeover"
		f.Do = "give the flags of the running server with --pid or --jvm-flags; if it has no flag that is missing here, correct the key or remove it"
	}
	return f
}

// at returns file:line, without what is unknown.
func at(file string, line int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

func assignment(key, value string) string {
	if value == "" {
		return key
	}
	return key + "=" + value
}

// membership returns what the settings of an ensemble mean for a takeover.
func membership(c *config.Config) []Finding {
	if c.Standalone() {
		return nil
	}
	var all []Finding
	if c.Tree.Reconfig || c.Ensemble.DynamicFile != "" {
		all = append(all, Finding{Warns, cmp.Or(c.Ensemble.DynamicFile, c.File), "the members can be changed while the ensemble runs (reconfig)",
			"each step of a takeover counts on the present members",
			"change no members until the last server has been replaced"})
	}
	if c.Ensemble.LocalSessions {
		all = append(all, Finding{Warns, c.File, "localSessionsEnabled is true", "all members must agree on it", "check that it is true in the zoo.cfg of every member"})
	}
	return all
}

// Moved returns where flags must be written that reached ZooKeeper in a way in which they do not reach
// Bellwether. all are all flags, seen those that Bellwether reads by itself. A flag
// without an effect is no finding here: a notice of c names it. c and err are what [config.Examine] says with all flags.
func Moved(c *config.Config, err error, all, seen []string) []Finding {
	known := map[string]bool{}
	for _, f := range config.Flags(seen) {
		known[f.Name] = true
	}
	if c != nil {
		for _, n := range c.Notices {
			if n.File == config.FlagsSource {
				known[strings.TrimPrefix(n.Key, "-D")] = true
			}
		}
	}
	var findings []Finding
	for _, f := range config.Flags(all) {
		if known[f.Name] {
			continue
		}
		found := moved(f)
		if c != nil && protects(c, err, all, f) {
			found.Severity, found.Why = Prevents, "without it the server would not start, or logins, permissions or TLS would change"
		}
		findings = append(findings, found)
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return strings.Compare(a.Where, b.Where) })
	return findings
}

// protects reports whether the server would not start without a flag, or would have other logins, permissions or TLS
// settings.
func protects(c *config.Config, err error, all []string, f config.Flag) bool {
	without, failed := config.Examine(c.File, slices.DeleteFunc(slices.Clone(all), func(word string) bool {
		name, _, _ := strings.Cut(word, "=")
		return name == "-D"+f.Name
	}))
	if without == nil || len(Separate(failed)) > len(Separate(err)) {
		return true
	}
	return !reflect.DeepEqual(c.Access, without.Access) ||
		!reflect.DeepEqual(effective(c.TLS), effective(without.TLS)) ||
		c.SASL.JAAS != nil && !reflect.DeepEqual(c.SASL, without.SASL)
}

// effective returns the settings that decide who can connect.
func effective(t config.TLS) config.TLS {
	t.ClientReload, t.QuorumReload, t.Clients.Notices, t.Servers.Notices = false, false, nil, nil
	return t
}

// moved returns the finding for a flag that Bellwether does not see.
func moved(f config.Flag) Finding {
	found := Finding{Warns, "flag -D" + f.Name, "has an effect in Bellwether, which does not see it where it is given now", "without it the server would work with other settings", ""}
	value := cmp.Or(f.Value, "…")
	if f.Key != "" {
		found.Do = fmt.Sprintf("add the line %s=%s to zoo.cfg", f.Key, value)
	} else if strings.ContainsAny(f.Value, " \t\n") {
		found.Do = fmt.Sprintf("choose a value without blanks for -D%s (it is %s) and add the flag to SERVER_JVMFLAGS in the file java.env beside zoo.cfg, which is split at blanks", f.Name, f.Value)
	} else {
		found.Do = fmt.Sprintf("add -D%s=%s to SERVER_JVMFLAGS in the file java.env beside zoo.cfg", f.Name, value)
	}
	return found
}
