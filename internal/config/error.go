package config

import (
	"fmt"
	"strings"
)

// Error is one fault in the configuration that prevents the start.
type Error struct {
	File    string // path, or JVMFLAGS for a Java property given as a flag
	Line    int    // 1-based; 0 if no single line is at fault
	Key     string // the key as written
	Value   string // the value as written; empty for secrets
	Problem string // what is wrong
	Allowed string // the allowed values; may be empty
	Remedy  string // what the operator should do
}

// Error returns one line: the place, the problem, the allowed values and the remedy.
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

// Notice is a remark about a setting that does not prevent the start.
type Notice struct {
	File string // as in Error; empty if the remark is not about a file
	Line int
	Key  string // the key as written
	Text string // what the setting does or does not do, and why
	// RefusesClients reports that the setting, as it stands, refuses every client, or every client that logs in.
	RefusesClients bool
}

// String returns one line: the place and the text.
func (n Notice) String() string {
	if n.File == "" && n.Key == "" {
		return n.Text
	}
	return place(n.File, n.Line, n.Key, "") + " " + n.Text
}

// place returns "file:line: key=value" without the parts that are unknown. Without a key
// the result ends in a colon.
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

// valueShown bounds how many bytes of a wrong value an error repeats.
const valueShown = 120

func clip(s string) string {
	if len(s) <= valueShown {
		return s
	}
	return strings.ToValidUTF8(s[:valueShown], "") + "…"
}
