package shell

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"bellwether/internal/terminal"
)

// topColumn is a column of a table of top. Of the columns that do not fit, those with the highest rank are left out.
type topColumn[T any] struct {
	head string
	rank int
	of   func(*T) string
}

var topServerColumns = []topColumn[topServer]{
	{"SERVER", 0, func(s *topServer) string { return s.Server }},
	{"ROLE", 0, func(s *topServer) string { return s.Mode }},
	{"REQ/S", 1, func(s *topServer) string { return rate(s.PerSecond) }},
	{"AVG ms", 2, func(s *topServer) string { return decimal(s.Average) }},
	{"ZXID", 5, func(s *topServer) string { return s.shown(s.Zxid) }},
	{"LAG", 3, func(s *topServer) string { return number(s.Behind) }},
	{"SESSIONS", 4, func(s *topServer) string { return number(s.Sessions) }},
	{"WATCHES", 6, func(s *topServer) string { return number(s.Watches) }},
	{"CONNS", 7, func(s *topServer) string { return s.shown(strconv.Itoa(s.Connections)) }},
	{"WAITING", 8, func(s *topServer) string { return s.shown(strconv.Itoa(s.Outstanding)) }},
	{"NODES", 9, func(s *topServer) string { return s.shown(strconv.Itoa(s.Nodes)) }},
	{"DISK", 6, func(s *topServer) string { return size(s.DiskBytes) }},
}

var topClientColumns = []topColumn[topClient]{
	{"CLIENT", 0, func(c *topClient) string { return c.Address }},
	{"REQ/S", 1, func(c *topClient) string { return rate(c.PerSecond) }},
	{"AVG ms", 2, func(c *topClient) string { return decimal(&c.Average) }},
	{"WAITING", 3, func(c *topClient) string { return strconv.FormatInt(c.Waiting, 10) }},
	{"SERVER", 4, func(c *topClient) string { return c.Server }},
	{"SESSION", 5, func(c *topClient) string { return c.Session }},
}

// none stands for a figure that is not known.
const none = "-"

// shown returns a figure of srvr, or none if the server has not answered.
func (s *topServer) shown(figure string) string {
	if s.Error != "" {
		return none
	}
	return figure
}

func rate(v *float64) string {
	switch {
	case v == nil:
		return none
	case *v < 10:
		return strconv.FormatFloat(*v, 'f', 1, 64)
	}
	return strconv.FormatFloat(*v, 'f', 0, 64)
}

func decimal(v *float64) string {
	if v == nil {
		return none
	}
	return strconv.FormatFloat(*v, 'f', 2, 64)
}

func number(v *int64) string {
	if v == nil {
		return none
	}
	return strconv.FormatInt(*v, 10)
}

// size formats bytes with a unit.
func size(v *int64) string {
	if v == nil {
		return none
	}
	n, unit := float64(*v), 0
	for ; n >= 1024 && unit < 4; unit++ {
		n /= 1024
	}
	return strconv.FormatFloat(n, 'f', 0, 64) + [...]string{"B", "K", "M", "G", "T"}[unit]
}

// text returns what is shown on a screen with so many columns and rows; 0: no limit.
func (t *top) text(columns, rows int) string {
	r := t.report()
	var b strings.Builder
	state := ""
	if t.paused {
		state = ", paused"
	}
	if rows > 0 {
		b.WriteString(oneLine(columns, r.Time+", every "+t.delay.String()+", by "+t.order.String()+state+"  q s p r", r.Time[11:19]+" "+t.order.String()+state))
	}
	servers := table(topServerColumns, r.Servers, columns)
	for i := range r.Servers {
		if s := &r.Servers[i]; s.Error != "" {
			servers += terminal.Cut(s.Server+" does not answer: "+s.Error, columnsOr(columns)) + "\n"
		}
	}
	b.WriteString(servers)
	if len(r.Connections) > 0 {
		b.WriteString("\n" + table(topClientColumns, r.Connections, columns))
	}
	if len(r.Paths) > 0 {
		b.WriteString("\n" + pathTable(r.Paths, columns))
	}
	return b.String()
}

// columnsOr returns columns. For 0, which means no limit, it returns a number that limits
// nothing.
func columnsOr(columns int) int {
	if columns <= 0 {
		return 1 << 20
	}
	return columns
}

// oneLine returns the first of the lines that fits. If none fits, it cuts the last one.
func oneLine(columns int, lines ...string) string {
	for _, line := range lines {
		if utf8.RuneCountInString(line) <= columnsOr(columns) {
			return line + "\n"
		}
	}
	return terminal.Cut(lines[len(lines)-1], columns) + "\n"
}

// table returns a table whose lines fit into so many columns.
func table[T any](all []topColumn[T], rows []T, columns int) string {
	for rank := 9; rank >= 0; rank-- {
		var chosen []topColumn[T]
		for _, c := range all {
			if c.rank <= rank {
				chosen = append(chosen, c)
			}
		}
		text, width := tableOf(chosen, rows)
		if width <= columnsOr(columns) || rank == 0 {
			return text
		}
	}
	return ""
}

// tableOf returns a table with these columns and its width. The first two columns are aligned to the left, figures to the
// right.
func tableOf[T any](columns []topColumn[T], rows []T) (text string, width int) {
	widths := make([]int, len(columns))
	cells := make([][]string, len(rows)+1)
	for i, c := range columns {
		cells[0] = append(cells[0], c.head)
		for j := range rows {
			cells[j+1] = append(cells[j+1], c.of(&rows[j]))
		}
		for _, row := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	var b strings.Builder
	for _, row := range cells {
		var line strings.Builder
		for i, cell := range row {
			left := columns[i].rank == 0 || columns[i].head == "SERVER" || columns[i].head == "SESSION"
			if left {
				fmt.Fprintf(&line, "%-*s", widths[i], cell)
			} else {
				fmt.Fprintf(&line, "%*s", widths[i], cell)
			}
			line.WriteString("  ")
		}
		end := strings.TrimRight(line.String(), " ")
		width = max(width, utf8.RuneCountInString(end))
		b.WriteString(end + "\n")
	}
	return b.String(), width
}
