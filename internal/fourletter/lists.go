package fourletter

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseMntr returns the numbers in the answer to mntr, by their names without the prefix zk_. The map
// is empty if the server does not answer mntr.
func ParseMntr(text string) map[string]float64 {
	values := map[string]float64{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "\t")
		name, named := strings.CutPrefix(name, "zk_")
		if v, err := strconv.ParseFloat(value, 64); ok && named && err == nil {
			values[name] = v
		}
	}
	return values
}

// ParseDirs returns the bytes of the snapshots and of the logs from the answer to dirs. ok is
// false if the server does not answer dirs.
func ParseDirs(text string) (snapshots, logs int64, ok bool) {
	found := 0
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err != nil || n < 0:
		case key == "datadir_size":
			snapshots, found = n, found+1
		case key == "logdir_size":
			logs, found = n, found+1
		}
	}
	return snapshots, logs, found == 2
}

// Election holds the fields of an election, as the word elog prints it, that say in which role
// a server serves.
type Election struct {
	Server        int64     `json:"server"`
	Began         time.Time `json:"began"`
	State         string    `json:"state"`
	Phase         string    `json:"phase"`
	Epoch         int64     `json:"epoch"`
	Ending        string    `json:"ending"`
	LookMS        int64     `json:"look_ms"`
	DiscoverMS    int64     `json:"discover_ms"`
	SynchroniseMS int64     `json:"synchronise_ms"`
}

// Since returns the time at which the server was ready to serve in its role.
func (e *Election) Since() time.Time {
	return e.Began.Add(time.Duration(e.LookMS+e.DiscoverMS+e.SynchroniseMS) * time.Millisecond)
}

// ParseElog returns the elections in the answer to elog, each as the JSON that was sent. The error
// says why there are none.
func ParseElog(text string) ([]json.RawMessage, error) {
	var raws []json.RawMessage
	if err := json.Unmarshal([]byte(text), &raws); err != nil {
		if text = strings.TrimSpace(text); text == "" {
			text = "no answer"
		}
		return nil, fmt.Errorf("the server has no record of elections, or does not show it: %s", Clip(Clean(text), ValueMax))
	}
	if len(raws) == 0 {
		return nil, errors.New("no election is recorded; a standalone server has none")
	}
	return raws, nil
}

// Serving returns the election in which a server got the role in which it now serves, from
// the answer to elog; nil: it does not serve, or does not record its elections.
func Serving(text string) (*Election, error) {
	var all []Election
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, err
	}
	if len(all) == 0 || all[len(all)-1].Phase != "serve" {
		return nil, nil
	}
	return &all[len(all)-1], nil
}
