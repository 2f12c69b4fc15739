package shell

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"
)

// statusField is one value of a server: a column of the table, or a labelled value if the
// terminal is too narrow for a table.
type statusField struct {
	head, short, label string
	of                 func(*serverStatus) string
}

var statusFields = []statusField{
	{"SERVER", "SERVER", "", func(s *serverStatus) string { return s.Server }},
	{"MODE", "MODE", "", func(s *serverStatus) string { return s.Mode }},
	{"ZXID", "ZXID", "zxid", func(s *serverStatus) string { return s.Zxid }},
	{"NODES", "NODES", "nodes", func(s *serverStatus) string { return strconv.Itoa(s.Nodes) }},
	{"CONNECTIONS", "CONNS", "connections", func(s *serverStatus) string { return strconv.Itoa(s.Connections) }},
	{"OUTSTANDING", "OUTST", "outstanding", func(s *serverStatus) string { return strconv.Itoa(s.Outstanding) }},
	{"LATENCY ms", "LATENCY ms", "latency ms", func(s *serverStatus) string { return s.Latency }},
	{"VERSION", "VERSION", "version", func(s *serverStatus) string { return s.Version }},
}

// aboutServer is the number of statusFields that a server without an answer has too.
const aboutServer = 2

func (a *app) printStatus(all []serverStatus) error {
	if a.json() {
		return printJSON(a.out, all)
	}
	_, err := io.WriteString(a.out, statusText(all, terminalWidth(a.out)))
	return err
}

// statusText returns a table of all fields, or a narrower form if the terminal is too
// narrow; width 0 means that the output is not a terminal.
func statusText(all []serverStatus, width int) string {
	table := statusTable(all, len(statusFields), func(f statusField) string { return f.head })
	if !fits(table, width) {
		table = narrowStatus(all, width)
	}
	return table + wrapped(summary(all), width)
}

// narrowStatus returns a table without the versions, which follow below it, or, if that is
// too wide as well, one paragraph for each server.
func narrowStatus(all []serverStatus, width int) string {
	table := statusTable(all, len(statusFields)-1, func(f statusField) string { return f.short })
	if fits(table, width) {
		return table + wrapped(versions(all), width)
	}
	var b strings.Builder
	for i := range all {
		b.WriteString(wrapped(statusParagraph(&all[i]), width))
	}
	return b.String()
}

// statusTable returns a table with one line for each server and the first n fields as columns.
func statusTable(all []serverStatus, n int, head func(statusField) string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(cell func(i int, f statusField) string) {
		cells := make([]string, n)
		for i, f := range statusFields[:n] {
			cells[i] = cell(i, f)
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	row(func(_ int, f statusField) string { return head(f) })
	for i := range all {
		s := &all[i]
		row(func(i int, f statusField) string {
			if s.Error != "" && i >= aboutServer {
				return "-"
			}
			return f.of(s)
		})
	}
	w.Flush()
	return b.String()
}

// unbroken is a blank at which wrapped does not break a line.
const unbroken = "\u00a0"

// statusParagraph returns all values of a server in one line, for wrapped.
func statusParagraph(s *serverStatus) string {
	fields := statusFields[aboutServer:]
	if s.Error != "" {
		fields = nil
	}
	line := s.Server + " " + s.Mode
	for _, f := range fields {
		line += ", " + strings.ReplaceAll(f.label+" "+f.of(s), " ", unbroken)
	}
	return line + "\n"
}

// versions lists the servers' versions, or the version once if all are equal.
func versions(all []serverStatus) string {
	var b strings.Builder
	of := func(s serverStatus) string { return s.Version }
	known := slices.DeleteFunc(slices.Clone(all), func(s serverStatus) bool { return s.Version == "" })
	if len(known) > 0 && !slices.ContainsFunc(known, func(s serverStatus) bool { return of(s) != of(known[0]) }) {
		return fmt.Sprintf("version %s\n", of(known[0]))
	}
	for _, s := range known {
		fmt.Fprintf(&b, "%s has version %s\n", s.Server, s.Version)
	}
	return b.String()
}

// summary describes the leader and what is wrong with other servers. It is empty for a
// healthy standalone server.
func summary(all []serverStatus) string {
	var b strings.Builder
	for _, s := range all {
		if s.Since != nil {
			fmt.Fprintf(&b, "%s leads epoch %d since %s\n", s.Server, s.Epoch, Instant(s.Since.UnixMilli()))
		}
		if s.Unfit != "" {
			fmt.Fprintf(&b, "%s knows servers that should not lead: %s\n", s.Server, s.Unfit)
		}
		if s.Prefers != "" {
			fmt.Fprintf(&b, "%s prefers as leader %s\n", s.Server, s.Prefers)
		}
	}
	for _, s := range all {
		if s.Error != "" {
			fmt.Fprintf(&b, "%s does not answer: %s\n", s.Server, s.Error)
		}
	}
	for _, s := range all {
		switch {
		case s.Error != "" || s.Writes && s.Reason == "":
		case s.Writes:
			fmt.Fprintf(&b, "%s serves only in part: %s\n", s.Server, s.Reason)
		case s.Reason == "":
			fmt.Fprintf(&b, "%s accepts no writes: it is %s\n", s.Server, s.Mode)
		default:
			fmt.Fprintf(&b, "%s accepts no writes: %s\n", s.Server, s.Reason)
		}
	}
	for _, s := range all {
		if s.SlowDisk != "" {
			fmt.Fprintf(&b, "%s (%s) has a slow disk: %s\n", s.Server, s.Mode, s.SlowDisk)
		}
	}
	for _, s := range all {
		if s.Behind != nil && *s.Behind > 0 {
			fmt.Fprintf(&b, "%s is %s behind\n", s.Server, Count(int(*s.Behind), "transaction"))
		}
	}
	b.WriteString(certificates(all, time.Now()))
	return b.String()
}

// fits reports whether no line is wider than width; 0 means no limit.
func fits(text string, width int) bool {
	for line := range strings.Lines(text) {
		if width > 0 && utf8.RuneCountInString(strings.TrimRight(line, " \n")) > width {
			return false
		}
	}
	return true
}

// wrapped breaks lines between words and indents the continuation lines. A word that is
// too long gets its own line.
func wrapped(text string, width int) string {
	if width <= 0 {
		return text
	}
	const indent = "  "
	var b strings.Builder
	for line := range strings.Lines(text) {
		used := 0
		for i, word := range strings.Split(strings.TrimSuffix(line, "\n"), " ") {
			n := utf8.RuneCountInString(word)
			switch {
			case i == 0:
			case used+1+n <= width:
				b.WriteByte(' ')
				used++
			default:
				b.WriteString("\n" + indent)
				used = len(indent)
			}
			b.WriteString(strings.ReplaceAll(word, unbroken, " "))
			used += n
		}
		b.WriteByte('\n')
	}
	return b.String()
}
