package shell

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// statusField is one figure of a server: a column of the table, or a labelled
// value where the terminal is too narrow for a table.
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

// aboutServer is how many of statusFields every server has, one that does not
// answer included.
const aboutServer = 2

func (a *app) printStatus(all []serverStatus) error {
	if a.json() {
		return printJSON(a.out, all)
	}
	_, err := io.WriteString(a.out, statusText(all, terminalWidth(a.out)))
	return err
}

// statusText is a table of all fields, or what is readable on a terminal that
// is too narrow for it; a width of 0 is no terminal.
func statusText(all []serverStatus, width int) string {
	table := statusTable(all, len(statusFields), func(f statusField) string { return f.head })
	if !fits(table, width) {
		table = narrowStatus(all, width)
	}
	return table + wrapped(glance(all), width)
}

// narrowStatus is a table without the versions, which follow below it, or one
// paragraph for each server where that is too wide as well.
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

// statusTable has one line for each server and the first n fields as columns.
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

// statusParagraph is a server with all of its figures, as one line to be wrapped.
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

// versions says which versions run, once where all are the same.
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

// glance says how the ensemble stands; nothing of a server that is alone and well.
func glance(all []serverStatus) string {
	var b strings.Builder
	for _, s := range all {
		if s.Since != nil {
			fmt.Fprintf(&b, "%s leads epoch %d since %s\n", s.Server, s.Epoch, Instant(s.Since.UnixMilli()))
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
			fmt.Fprintf(&b, "%s takes only part: %s\n", s.Server, s.Reason)
		case s.Reason == "":
			fmt.Fprintf(&b, "%s takes no writes: it is %s\n", s.Server, s.Mode)
		default:
			fmt.Fprintf(&b, "%s takes no writes: %s\n", s.Server, s.Reason)
		}
	}
	for _, s := range all {
		if s.Behind != nil && *s.Behind > 0 {
			fmt.Fprintf(&b, "%s is %s behind\n", s.Server, Count(int(*s.Behind), "transaction"))
		}
	}
	return b.String()
}

// fits reports whether no line is wider than a terminal; 0 is no terminal.
func fits(text string, width int) bool {
	for line := range strings.Lines(text) {
		if width > 0 && utf8.RuneCountInString(strings.TrimRight(line, " \n")) > width {
			return false
		}
	}
	return true
}

// wrapped breaks lines between words, with an indent before what follows. A
// word that is too long has a line of its own.
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
