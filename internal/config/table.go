package config

import (
	"strings"
	"time"
)

// kind says where a setting can be given.
type kind uint8

const (
	parsed   kind = 1 << iota // P: a key that the parser of zoo.cfg knows
	system                    // S: Java property zookeeper.<key>, from any other line or -D
	java                      // J: a Java property of another name, from -D only
	unprefix                  // S that is also read as a -D property without zookeeper.
)

// status says what this version does with a setting.
type status uint8

const (
	honoured   status = iota
	inEnsemble        // checked; means something only among several servers
	ignored           // no effect; a notice says why
	stops             // guards something that is not supported: the start is refused
)

// form is how a value is read.
type form uint8

const (
	text     form = iota // any text
	decimal              // decimal number
	number               // decimal, 0x or # hexadecimal, or octal after a leading 0
	fraction             // decimal fraction
	boolean              // true or false, in any case
	yesNo                // one exact word switches; every other value means the opposite
	word                 // one of words, or empty if words begins with ""
	list                 // comma-separated
	path                 // name of a file or directory
	host                 // name or literal address
	pattern              // the row stands for a family of keys: name ends with *
)

// key is one row of the table.
type key struct {
	name   string // as written in zoo.cfg; for kind J the property
	kind   kind
	form   form
	unit   string // ms, bytes, KB, hours, ticks, s or nothing
	def    string // default, as it would be written; what is empty is unset
	says   string // default in words, where it is derived from other settings
	min    int64  // lowest number allowed
	max    int64  // highest; 0 means the largest int32
	words  []string
	effect string // one sentence
	status status
	reason string // why it is ignored, or what it guards
	same   string // the value at which ignoring it changes nothing: no notice, no refusal
	when   string // the only value that guards; empty: every value does
	exact  string // of form yesNo: the one word that has an effect
	secret bool   // values are not repeated in errors
	live   bool   // a running server that reads the file again takes a new value over
	into   func(*Config) any
}

// table is every key, by sections in the order of the documentation.
var table = []section{
	{"Essential", basicKeys},
	{"Sessions, connections, limits", limitKeys},
	{"Storage", storageKeys},
	{"Ensemble", ensembleKeys},
	{"Security", securityKeys},
	{"TLS", tlsKeys()},
	{"Admin server, metrics, audit", adminKeys},
	{"Java only", javaKeys},
}

// section is one group of rows.
type section struct {
	title string
	keys  []key
}

// byName finds a row by its exact name; families are found by prefix in patterns.
var byName, patterns = index()

func index() (map[string]*key, []*key) {
	names := make(map[string]*key)
	var families []*key
	for _, s := range table {
		for i := range s.keys {
			k := &s.keys[i]
			names[k.name] = k
			if k.form == pattern {
				families = append(families, k)
			}
		}
	}
	return names, families
}

// find returns the row for a key, or nil.
func find(name string) *key {
	if k := byName[name]; k != nil && k.form != pattern {
		return k
	}
	for _, k := range patterns {
		if prefix := strings.TrimSuffix(k.name, "*"); len(name) > len(prefix) && strings.HasPrefix(name, prefix) {
			return k
		}
	}
	return nil
}

// unitOf returns the factor of a unit in nanoseconds or bytes.
func unitOf(unit string) int64 {
	switch unit {
	case "ms":
		return int64(time.Millisecond)
	case "s":
		return int64(time.Second)
	case "hours":
		return int64(time.Hour)
	case "KB":
		return 1024
	}
	return 1
}
