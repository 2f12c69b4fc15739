package shell

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"bellwether/internal/fourletter"
	"bellwether/internal/terminal"
)

// topPath is a path on which clients have set watches.
type topPath struct {
	Path     string `json:"path"`
	Watchers int    `json:"watchers"` // sessions, on all servers
}

const (
	// pathsReported is how many paths a listing has.
	pathsReported = 5
	// watchesMax is how many watches a server may have so that it is asked for all of them each time.
	watchesMax = 10_000
)

// watchers returns the number of sessions that watch each path on a server. It is nil if the server does not say so, or
// has too many watches.
func (t *top) watchers(ctx context.Context, name string, watches *int64) map[string]int {
	if watches == nil || *watches == 0 || *watches > watchesMax {
		return nil
	}
	text, err := t.word(ctx, name, "wchp", t.timeout)
	if err != nil {
		return nil
	}
	return parseWatchers(text)
}

// parseWatchers parses an answer to wchp: a line for each path, and below it an indented line for each session.
func parseWatchers(text string) map[string]int {
	all, path := map[string]int{}, ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch session, indented := strings.CutPrefix(line, "\t"); {
		case !indented:
			path = line
		case strings.HasPrefix(path, "/"):
			if _, ok := parseSession(session); ok {
				all[path]++
			}
		}
	}
	return all
}

// hottest returns the paths of all servers that most sessions watch.
func hottest(servers []topServer) []topPath {
	sum := map[string]int{}
	for i := range servers {
		for path, n := range servers[i].watchers {
			sum[path] += n
		}
	}
	all := []topPath{}
	for _, path := range slices.Sorted(maps.Keys(sum)) {
		all = append(all, topPath{path, sum[path]})
	}
	slices.SortStableFunc(all, func(x, y topPath) int { return cmp.Compare(y.Watchers, x.Watchers) })
	return all[:min(len(all), pathsReported)]
}

// pathTable returns the table of the hottest paths. It cuts paths that do not fit.
func pathTable(paths []topPath, columns int) string {
	const others = len("  WATCHERS")
	return table([]topColumn[topPath]{
		{"PATH", 0, func(p *topPath) string {
			return terminal.Cut(fourletter.Clean(p.Path), max(columnsOr(columns)-others, others))
		}},
		{"WATCHERS", 1, func(p *topPath) string { return number(new(int64(p.Watchers))) }},
	}, paths, columns)
}
