package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestPathRates shows that a list of paths and numbers is read with the longest path first,
// and that it may have pathsMax paths. A path may contain a colon.
func TestPathRates(t *testing.T) {
	c := loadText(t, t.TempDir(), "dataDir=DIR\npathRequestsPerSecond= /:1 , /a:b:20,/a/b/c : 3,\n")
	want := []PathRate{{"/a/b/c", 3}, {"/a:b", 20}, {"/", 1}}
	if got := c.Limits.Rates.PathRequests; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	var items []string
	for i := range pathsMax {
		items = append(items, fmt.Sprintf("/p%d:1", i))
	}
	if _, ok := parsePathRates(strings.Join(items, ",")); !ok {
		t.Errorf("%d paths are refused", pathsMax)
	}
	if _, ok := parsePathRates(strings.Join(items, ",") + ",/more:1"); ok {
		t.Errorf("more than %d paths are accepted", pathsMax)
	}
}

// TestRatesLimited shows that Limited is false without limits, and true with any of them.
func TestRatesLimited(t *testing.T) {
	if r := Default().Limits.Rates; r.Limited() {
		t.Errorf("%+v", r)
	}
	for _, line := range []string{"clientRequestsPerSecond=1", "clientBytesPerSecond=1", "pathRequestsPerSecond=/:1", "pathBytesPerSecond=/:1"} {
		if c := loadText(t, t.TempDir(), "dataDir=DIR\n"+line+"\n"); !c.Limits.Rates.Limited() {
			t.Errorf("%s is no limit", line)
		}
	}
}
