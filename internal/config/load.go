package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"bellwether/internal/ensemble"
)

// fileMax bounds the size of a configuration file in bytes.
const fileMax = 1 << 20

// setting is the value that was given for one row of the table.
type setting struct {
	key   *key
	file  string
	line  int
	name  string // the key as written
	value string
}

// loader collects the settings, notices and errors of one Load.
type loader struct {
	c        *Config
	settings map[string]setting // by the name of the row; for families by the name as written
	flags    map[string]string  // the -D flags, those of other programs included
	members  []ensemble.Property
	errs     []*Error
}

// Load reads the configuration file at path, the dynamic configuration file that it
// names, and myid. jvmFlags are the flags with which a Java server would have been
// started; see [JVMFlags]. They are split at blanks, as ZooKeeper's shell scripts do, and
// quotes have no meaning. On failure the error joins one [Error] for each fault, in order
// of their lines; errors.As finds the first one.
func Load(path, jvmFlags string) (*Config, error) {
	l, err := begin(path, strings.Fields(jvmFlags))
	if err != nil {
		return nil, err
	}
	if len(l.errs) == 0 {
		l.loadMembers()
	}
	if err := l.end(); err != nil {
		return nil, err
	}
	return l.c, nil
}

// Examine is Load for a caller that starts no server: with faults too, it returns a configuration, in which the
// settings at fault have their defaults. It returns none if the data directory or the members are unknown. The flags are
// those of a running server too, so each is a word of its own and may contain blanks.
func Examine(path string, jvmFlags []string) (*Config, error) {
	l, err := begin(path, jvmFlags)
	if err != nil {
		return nil, err
	}
	before := l.errs
	l.errs = nil
	if l.c.DataDir != "" {
		l.loadMembers()
	}
	known := l.c.DataDir != "" && len(l.errs) == 0
	l.errs = append(before, l.errs...)
	err = l.end()
	if !known {
		return nil, err
	}
	return l.c, err
}

// begin reads everything except the members.
func begin(path string, jvmFlags []string) (*loader, error) {
	props, text, err := readText(path)
	if err != nil {
		return nil, err
	}
	l := &loader{c: defaults(), settings: make(map[string]setting), flags: make(map[string]string)}
	l.c.File, l.c.text = path, withoutSecrets(text)
	l.applyFile(path, props)
	l.applyFlags(jvmFlags)
	l.setAll()
	l.loadTLS()
	l.loadJAAS()
	l.loadSASL()
	l.check()
	return l, nil
}

// end does what needs a configuration without faults, or returns the faults.
func (l *loader) end() error {
	if len(l.errs) == 0 {
		l.loadQuorumSASL()
	}
	if len(l.errs) > 0 {
		l.sortNotices()
		return l.joined()
	}
	l.warn()
	l.sortNotices()
	l.noteGiven()
	return nil
}

// noteGiven stores the written values for Config.Reloaded.
func (l *loader) noteGiven() {
	given := make(map[string]string, len(l.settings)+len(l.members)+1)
	for name, v := range l.settings {
		given[name] = v.value
	}
	for _, p := range l.members {
		given[p.Key] = p.Value
	}
	if l.c.Ensemble.HasID {
		given[idFile] = strconv.FormatInt(int64(l.c.Ensemble.ID), 10)
	}
	l.c.given = given
}

// readProperties reads one properties file.
func readProperties(path string) ([]ensemble.Property, error) {
	props, _, err := readText(path)
	return props, err
}

// readText reads one properties file and returns its text too.
func readText(path string) (props []ensemble.Property, whole string, err error) {
	text, err := readFile(path)
	if err != nil {
		return nil, "", fmt.Errorf("configuration file: %w", err)
	}
	if mark := byteOrderMark(text); mark != "" {
		e := &Error{File: path, Line: 1, Problem: "begins with the byte-order mark of " + mark + ": Java would read it as part of the first key and so ignore that key"}
		e.Remedy = "save the file as plain text (ISO-8859-1 or ASCII) without a byte-order mark"
		return nil, "", e
	}
	whole = ensemble.Latin1(text)
	props, err = ensemble.ReadProperties(whole)
	if bad := (*ensemble.SyntaxError)(nil); errors.As(err, &bad) {
		return nil, "", &Error{File: path, Line: bad.Line, Problem: bad.Reason}
	}
	return props, whole, err
}

// byteOrderMark returns the encoding whose byte-order mark begins the text, or "".
func byteOrderMark(text []byte) string {
	for mark, encoding := range map[string]string{"\xef\xbb\xbf": "UTF-8", "\xff\xfe": "UTF-16", "\xfe\xff": "UTF-16"} {
		if bytes.HasPrefix(text, []byte(mark)) {
			return encoding
		}
	}
	return ""
}

// readFile reads a file of at most fileMax bytes.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, fileMax+1))
	if err == nil && len(text) > fileMax {
		err = fmt.Errorf("%s is longer than %d bytes", path, fileMax)
	}
	return text, err
}

// defaults returns a Config with the defaults of the table.
func defaults() *Config {
	c := &Config{}
	for _, s := range table {
		for i := range s.keys {
			k := &s.keys[i]
			if k.def != "" && !k.set(c, k.def) {
				panic("config: the default of " + k.name + " is not allowed")
			}
		}
	}
	return c
}

// applyFile adds the lines of zoo.cfg to the settings. The last of several lines with
// the same key wins.
func (l *loader) applyFile(path string, props []ensemble.Property) {
	last := make(map[string]int, len(props))
	for _, p := range props {
		last[p.Key] = p.Line
	}
	for _, p := range props {
		if at := last[p.Key]; at != p.Line {
			l.warning(path, p.Line, p.Key, fmt.Sprintf("is overridden by line %d", at))
			continue
		}
		l.applyLine(path, p)
	}
}

// applyLine adds one line of zoo.cfg to the settings.
func (l *loader) applyLine(path string, p ensemble.Property) {
	k := byName[p.Key]
	switch {
	case (k == nil || k.form == pattern) && ensemble.IsMemberKey(p.Key):
		l.members = append(l.members, p)
		return
	case k == nil || k.form == pattern:
		k = find(p.Key)
	}
	if k == nil || k.kind&(parsed|system) == 0 {
		l.notice(path, p.Line, p.Key, noEffect(p.Key))
		return
	}
	id := k.name
	if k.form == pattern {
		id = p.Key
	}
	l.settings[id] = setting{key: k, file: path, line: p.Line, name: p.Key, value: p.Value}
}

// setAll stores the settings in the Config, in order of the table: a later row overrides
// an earlier one.
func (l *loader) setAll() {
	for _, s := range table {
		for i := range s.keys {
			k := &s.keys[i]
			if k.form == pattern {
				l.setFamily(k)
			} else if v, ok := l.settings[k.name]; ok {
				l.set(v)
			}
		}
	}
}

// setFamily stores the settings that belong to a pattern.
func (l *loader) setFamily(k *key) {
	for _, v := range l.settings {
		if v.key == k {
			l.set(v)
		}
	}
}

// set handles one setting according to the status of its row. An ignored key does not
// stop the start, whatever its value.
func (l *loader) set(v setting) {
	k := v.key
	if k.tls {
		return // loadTLS sets this key
	}
	if k.status == stops {
		l.refuse(v)
		return
	}
	if ok := k.set(l.c, v.value); !ok && k.status != ignored {
		l.bad(v)
		return
	}
	if k.status == ignored && (k.same == "" || !strings.EqualFold(v.value, k.same)) {
		l.notice(v.file, v.line, v.name, "is ignored: "+k.reason)
	}
	if k.form == yesNo && v.value != k.exact && v.value != opposite(k.exact) {
		l.notice(v.file, v.line, v.name, fmt.Sprintf("is %q, which means %s: only the exact word %s has an effect", clip(v.value), opposite(k.exact), k.exact))
	}
}

func opposite(word string) string {
	switch word {
	case "yes":
		return "no"
	case "false":
		return "true"
	}
	return "yes"
}

// refuse records an error for a key that requires an unsupported security feature,
// unless its value disables the feature.
func (l *loader) refuse(v setting) {
	k := v.key
	if k.same != "" && strings.EqualFold(v.value, k.same) || builtinProvider(v) {
		return
	}
	if k.when != "" && !strings.EqualFold(v.value, k.when) {
		l.bad(v)
		return
	}
	e := l.fail(v.file, v.line, v.name, "is not supported by this version: "+k.reason)
	if !k.secret {
		e.Value = v.value
	}
	e.Remedy = "remove the key to run without this feature, or stay with ZooKeeper"
}

// builtinProvider reports whether a setting registers a scheme that this version has.
func builtinProvider(v setting) bool {
	const classes = "org.apache.zookeeper.server.auth."
	return v.key.name == "authProvider.*" &&
		slices.Contains([]string{classes + "DigestAuthenticationProvider", classes + "IPAuthenticationProvider", classes + "X509AuthenticationProvider", saslClass}, v.value)
}

// bad reports a value that is not allowed.
func (l *loader) bad(v setting) {
	e := l.fail(v.file, v.line, v.name, "is not allowed")
	if !v.key.secret {
		e.Value = v.value
	}
	e.Allowed = v.key.allowed()
	e.Remedy = "correct it or remove it"
	if d := v.key.defaultText(); d != "" {
		e.Remedy += " for the default, " + d
	}
}

// defaultText returns the default in a form for people.
func (k *key) defaultText() string {
	if k.says != "" {
		return k.says
	}
	return k.def
}

// fail records an error and returns it, so that the caller can fill in the other fields.
func (l *loader) fail(file string, line int, name, problem string) *Error {
	e := &Error{File: file, Line: line, Key: name, Problem: problem}
	l.errs = append(l.errs, e)
	return e
}

// failKey records an error about a row, at the line where it was given.
func (l *loader) failKey(name, problem, remedy string) {
	v, given := l.settings[name]
	if !given {
		v = setting{file: l.c.File, name: name}
	}
	e := l.fail(v.file, v.line, v.name, problem)
	if given && !v.key.secret {
		e.Value = v.value
	}
	e.Remedy = remedy
}

func (l *loader) notice(file string, line int, name, why string) {
	l.c.Notices = append(l.c.Notices, Notice{File: file, Line: line, Key: name, Text: why})
}

// noticeIf adds a notice about a key, at the line that sets it, if yes is true.
func (l *loader) noticeIf(yes bool, name, why string) {
	if v, given := l.settings[name]; yes && given {
		l.notice(v.file, v.line, v.name, why)
	}
}

func (l *loader) warning(file string, line int, name, why string) {
	l.c.Warnings = append(l.c.Warnings, Notice{File: file, Line: line, Key: name, Text: why})
}

// joined returns all errors, ordered by place.
func (l *loader) joined() error {
	slices.SortStableFunc(l.errs, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(b.rank(), a.rank()), cmp.Compare(a.Line, b.Line), strings.Compare(a.Key, b.Key))
	})
	all := make([]error, len(l.errs))
	for i, e := range l.errs {
		all[i] = e
	}
	return errors.Join(all...)
}

// rank orders errors: lines of files first, then missing keys, then flags.
func (e *Error) rank() int {
	switch {
	case e.File == FlagsSource:
		return 0
	case e.Line == 0:
		return 1
	}
	return 2
}

// sortNotices sorts notices and warnings by file and line.
func (l *loader) sortNotices() {
	flags := func(n Notice) int {
		if n.File == FlagsSource {
			return 1
		}
		return 0
	}
	for _, ns := range [][]Notice{l.c.Notices, l.c.Warnings} {
		slices.SortStableFunc(ns, func(a, b Notice) int {
			return cmp.Or(flags(a)-flags(b), strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(a.Key, b.Key))
		})
	}
}
