package config

import "slices"

// Flag is a -D flag that has an effect in Bellwether.
type Flag struct {
	Name  string // the Java property
	Value string // empty if it is secret
	Key   string // the key of zoo.cfg with the same effect; empty: it can only be given as a flag
}

// Flags returns the -D flags among JVM flags that have an effect, in their order. Of two flags for one property only
// the last one counts.
func Flags(words []string) []Flag {
	var all []Flag
	for _, f := range parseFlags(words) {
		k, _ := findProperty(f.name)
		if f.other != "" || k == nil || k.status == ignored {
			continue
		}
		flag := Flag{Name: f.name, Value: f.value}
		if k.kind&java == 0 {
			flag.Key = k.name
			if k.form == pattern {
				flag.Key = withoutPrefix(f.name)
			}
		}
		if k.secret {
			flag.Value = ""
		}
		all = append(slices.DeleteFunc(all, func(o Flag) bool { return o.Name == f.name }), flag)
	}
	return all
}
