package shadow

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bellwether/wire"
)

const (
	dataShown  = 64 // bytes of data in a report
	namesShown = 20 // names of children in a report
)

// dataTexts prints two values of a znode's data that differ.
func dataTexts(a, b []byte) (string, string) {
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	return dataText(a, at), dataText(b, at)
}

// dataText prints data; if it is long, the part at the first difference.
func dataText(b []byte, at int) string {
	switch {
	case b == nil:
		return "null"
	case len(b) <= dataShown:
		return strconv.Quote(string(b))
	}
	from := min(max(0, at-dataShown/4), len(b))
	part := b[from:min(len(b), from+dataShown)]
	return fmt.Sprintf("%d bytes, from byte %d: %s", len(b), from, strconv.Quote(string(part)))
}

// namesText prints how many names there are, and those that the other list does not have. Both lists are sorted.
func namesText(names, others []string) string {
	var only []string
	for _, name := range names {
		if _, ok := slices.BinarySearch(others, name); !ok {
			only = append(only, strconv.Quote(name))
		}
	}
	text := fmt.Sprintf("%d names", len(names))
	if len(only) > 0 {
		more := ""
		if len(only) > namesShown {
			more = fmt.Sprintf(" and %d more", len(only)-namesShown)
			only = only[:namesShown]
		}
		text += ", only here: " + strings.Join(only, " ") + more
	}
	return text
}

func aclTexts(list []wire.ACL) []string {
	var texts []string
	for _, a := range list {
		texts = append(texts, fmt.Sprintf("%s:%s:%d", a.ID.Scheme, a.ID.ID, a.Perms))
	}
	return texts
}

// hashless returns the entries of a list sorted and without duplicates. An entry of the scheme digest loses its hash if the
// other list shows it without one.
func hashless(list, other []string) []string {
	var out []string
	for _, e := range list {
		if hidden := hideHash(e); slices.Contains(list, hidden) || slices.Contains(other, hidden) {
			e = hidden
		}
		out = append(out, e)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// hideHash replaces the hash of a digest entry by x, as servers do.
func hideHash(entry string) string {
	parts := strings.Split(entry, ":")
	if len(parts) != 4 || parts[0] != wire.SchemeDigest {
		return entry
	}
	parts[2] = "x"
	return strings.Join(parts, ":")
}
