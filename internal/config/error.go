package config

import (
	"fmt"
	"strings"
)

// Error is one thing in the configuration that stops the start.
type Error struct {
	File    string // path, or JVMFLAGS for a Java property given as a flag
	Line    int    // 1-based; 0 where no single line is at fault
	Key     string // as written
	Value   string // as written; empty for secrets
	Problem string // what is wrong
	Allowed string // what would be right, if that can be said
	Remedy  string // what to do
}

// Error returns one line: where, what is wrong, what is allowed, what to do.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(place(e.File, e.Line, e.Key, e.Value))
	b.WriteByte(' ')
	b.WriteString(e.Problem)
	if e.Allowed != "" {
		b.WriteString("; allowed is " + e.Allowed)
	}
	if e.Remedy != "" {
		b.WriteString("; " + e.Remedy)
	}
	return b.String()
}

// Notice is one thing worth knowing that does not stop the start.
type Notice struct {
	File string // as in Error; empty where no file is concerned
	Line int
	Key  string // as written
	Text string // what it does or does not do, and why
}

// String returns one line: where, and the text.
func (n Notice) String() string {
	if n.File == "" && n.Key == "" {
		return n.Text
	}
	return place(n.File, n.Line, n.Key, "") + " " + n.Text
}

// place returns file:line: key=value, as far as they are known, and without a key
// what ends in a colon.
func place(file string, line int, key, value string) string {
	var b strings.Builder
	b.WriteString(file)
	if line > 0 {
		fmt.Fprintf(&b, ":%d", line)
	}
	if file != "" {
		b.WriteString(": ")
	}
	b.WriteString(key)
	if value != "" {
		b.WriteByte('=')
		b.WriteString(clip(value))
	}
	return strings.TrimSuffix(b.String(), " ")
}

// valueShown bounds how much of a wrong value an error repeats.
const valueShown = 120

func clip(s string) string {
	if len(s) <= valueShown {
		return s
	}
	return strings.ToValidUTF8(s[:valueShown], "") + "…"
}
