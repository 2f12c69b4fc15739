package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRefusedKeysAreDocumented shows that docs/differences.md lists, with a reason, exactly
// the keys that can stop the start.
func TestRefusedKeysAreDocumented(t *testing.T) {
	listed := refusedKeys(t)
	for _, s := range table {
		for _, k := range s.keys {
			if k.status != stops {
				continue
			}
			found := false
			for pattern := range listed {
				if fits, _ := filepath.Match(pattern, k.name); fits || pattern == k.name {
					found, listed[pattern] = true, true
				}
			}
			if !found {
				t.Errorf("%s stops the start, but docs/differences.md does not list it", k.name)
			}
		}
	}
	for pattern, met := range listed {
		if !met {
			t.Errorf("docs/differences.md lists %s, which does not stop the start", pattern)
		}
	}
}

// refusedKeys returns the names in the section of docs/differences.md about keys that stop
// the start, each with the value false.
func refusedKeys(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Keys that stop the start\n")
	section, _, _ = strings.Cut(section, "\n## ")
	row := regexp.MustCompile(`(?m)^\| ([^|]+) \| [^|]+ \|$`)
	name := regexp.MustCompile("`([^`=]+)(?:=[^`]*)?`")
	all := map[string]bool{}
	for _, r := range row.FindAllStringSubmatch(section, -1) {
		for _, n := range name.FindAllStringSubmatch(r[1], -1) {
			all[n[1]] = false
		}
	}
	return all
}
