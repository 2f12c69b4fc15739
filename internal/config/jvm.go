package config

import "strings"

// FlagsSource is the File of errors and notices about Java properties given as JVM flags.
const FlagsSource = "JVMFLAGS"

// jvmFlag is one JVM flag: -Dname=value or another one.
type jvmFlag struct {
	name, value string // the two parts of -Dname=value
	other       string // the whole flag if it does not begin with -D
}

// parseFlags parses JVM flags, one in each word. A word may contain blanks.
func parseFlags(words []string) []jvmFlag {
	var flags []jvmFlag
	for _, word := range words {
		if def, ok := strings.CutPrefix(word, "-D"); ok && def != "" {
			name, value, _ := strings.Cut(def, "=")
			flags = append(flags, jvmFlag{name: name, value: value})
			continue
		}
		flags = append(flags, jvmFlag{other: word})
	}
	return flags
}

// applyFlags adds the Java properties to the settings. A property that zoo.cfg also sets
// keeps the value of zoo.cfg. Of two flags for one property the later one wins.
func (l *loader) applyFlags(words []string) {
	flags := parseFlags(words)
	for i := len(flags) - 1; i >= 0; i-- {
		f := flags[i]
		if f.other != "" {
			l.notice(FlagsSource, 0, clip(f.other), otherFlag(f.other))
			continue
		}
		if _, later := l.flags[f.name]; later {
			continue
		}
		l.flags[f.name] = f.value
		l.applyProperty(f)
	}
}

// applyProperty adds one -D flag to the settings.
func (l *loader) applyProperty(f jvmFlag) {
	shown := "-D" + f.name
	k, prefixed := findProperty(f.name)
	if k == nil {
		l.notice(FlagsSource, 0, shown, unknownProperty(f.name))
		return
	}
	s := setting{key: k, file: FlagsSource, name: shown, value: f.value}
	id := k.name
	if k.form == pattern {
		id = withoutPrefix(f.name)
	}
	old, given := l.settings[id]
	switch {
	case given && old.file != FlagsSource:
		l.notice(FlagsSource, 0, shown, "has no effect: "+place(old.file, old.line, old.name, "")+" sets it, and the file wins")
	case given && prefixed == "":
		// -Dzookeeper.<name> wins over -D<name>.
	default:
		l.settings[id] = s
	}
}

// findProperty returns the row of a Java property, and the prefix under which it was
// found.
func findProperty(name string) (*key, string) {
	if k := find(name); k != nil && k.kind&(java|unprefix) != 0 {
		return k, ""
	}
	if rest, ok := strings.CutPrefix(name, "zookeeper."); ok {
		if k := find(rest); k != nil && k.kind&system != 0 {
			return k, "zookeeper."
		}
	}
	return nil, ""
}

// unknownProperty returns why a -D flag has no effect.
func unknownProperty(name string) string {
	rest, ours := strings.CutPrefix(name, "zookeeper.")
	switch k := find(rest); {
	case !ours && find(name) != nil:
		return "has no effect: the property is zookeeper." + name
	case !ours:
		return "is ignored: it is a setting of Java or of a library"
	case k != nil && k.kind&java != 0:
		return "has no effect: the property is " + rest + ", without zookeeper."
	case k != nil:
		return "has no effect: " + rest + " is read from zoo.cfg only"
	}
	if right := misnamed[rest]; right != "" {
		return "has no effect: the name that works is zookeeper." + right
	}
	return "is ignored: ZooKeeper has no such property" + suggestion(rest)
}

// otherFlag returns why a flag other than -D has no effect.
func otherFlag(f string) string {
	switch {
	case strings.HasPrefix(f, "-Xmx"):
		return "is ignored: there is no Java heap; the environment variable GOMEMLIMIT sets a soft limit"
	case strings.HasPrefix(f, "-javaagent") && strings.Contains(f, "jmx"):
		return "is ignored: there are no Java agents, so this one's metrics port will not be open"
	}
	return "is ignored: it is a flag of the Java virtual machine"
}

// withoutPrefix returns the key of a Java property of ZooKeeper.
func withoutPrefix(property string) string { return strings.TrimPrefix(property, "zookeeper.") }
