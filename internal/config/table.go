package config

import (
	"strings"
	"time"
)

// kind is the set of ways in which a setting can be given.
type kind uint8

const (
	parsed   kind = 1 << iota // P: a key of zoo.cfg
	system                    // S: Java property zookeeper.<key>, from any other line of zoo.cfg or -D
	java                      // J: Java property with another name, from -D only
	unprefix                  // S, and as a -D property also without zookeeper.
)

// status is what this version does with a setting.
type status uint8

const (
	honoured   status = iota
	inEnsemble        // checked; has an effect only in an ensemble
	ignored           // no effect; a notice gives the reason
	stops             // requires a security feature that is not supported: the server does not start
)

// form is the syntax of a value.
type form uint8

const (
	text      form = iota // any text
	decimal               // decimal number
	number                // decimal, 0x or # hexadecimal, or octal after a leading 0
	fraction              // decimal fraction
	share                 // decimal fraction from 0 to 1
	boolean               // true or false, in any case
	yesNo                 // one exact word has an effect; every other value means the opposite
	word                  // one of words, or empty if words begins with ""
	list                  // comma-separated
	pathRates             // PATH:NUMBER,...
	path                  // name of a file or directory
	host                  // name or literal address
	pattern               // the row stands for a family of keys: name ends with *
)

// key is one row of the table.
type key struct {
	name   string // as written in zoo.cfg; for kind J the name of the property
	kind   kind
	form   form
	unit   string // ms, bytes, KB, hours, ticks, s or nothing
	def    string // default as it would be written; empty: unset
	says   string // default in words, if it depends on other settings
	min    int64  // lowest number allowed
	max    int64  // highest number allowed; 0 means the largest int32
	words  []string
	effect string // the effect of the key, in one sentence
	status status
	reason string            // why it is ignored, or which feature it requires
	same   string            // the value for which ignoring the key changes nothing: no notice, no refusal
	when   string            // status stops: the only value that requires the feature; empty: every value does
	exact  string            // form yesNo: the one word that has an effect
	secret bool              // errors do not repeat the value
	tls    bool              // package secure checks and stores the value
	live   bool              // a running server applies a new value when it rereads the file
	into   func(*Config) any // the field for the value; nil if it is not stored
}

// table holds every key, in the order of the documentation.
var table = []section{
	{"Essential", basicKeys},
	{"Sessions, connections, limits", limitKeys},
	{"Connection throttle", connectionKeys},
	{"Limits for clients and paths", rateKeys},
	{"Storage", storageKeys},
	{"Ensemble", ensembleKeys},
	{"Security", securityKeys},
	{"TLS", tlsKeys()},
	{"Admin server, metrics, audit", adminKeys},
	{"Java only", javaKeys},
}

// section is a titled group of rows.
type section struct {
	title string
	keys  []key
}

// byName finds a row by its exact name; patterns holds the families, found by prefix.
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

// find returns the row of a key, or nil.
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

// unitOf returns the factor that converts a unit to nanoseconds or bytes.
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
