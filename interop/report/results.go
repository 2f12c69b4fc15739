package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// figure is one number of a row.
type figure struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	More  bool    `json:"more,omitempty"` // more is better
}

// result holds the figures of one row, pair and system. A file of results has one in each line.
type result struct {
	Row      string   `json:"row"`
	Pair     int      `json:"pair"`
	System   string   `json:"system"`
	Settings settings `json:"settings"`
	Figures  []figure `json:"figures"`
	Skipped  string   `json:"skipped,omitempty"` // why nothing was measured
	Seconds  float64  `json:"seconds,omitempty"` // how long all of it took
}

// settings must be the same for all results of a table.
type settings struct {
	Date     string `json:"date"` // when the run began
	Machine  string `json:"machine"`
	Versions string `json:"versions"`
	Warmup   string `json:"warmup"`
	Duration string `json:"duration"`
	Heap     string `json:"heap"`
	Curves   string `json:"curves,omitempty"`  // the duration of each measurement of a curve
	Divided  int    `json:"divided,omitempty"` // by what the sizes are divided, to try the rows out; 0: by nothing
}

// same reports whether results with these settings may be in one table. A run may take days.
func (s settings) same(o settings) bool {
	s.Date, o.Date = "", ""
	return s == o
}

// readResults reads a file of results; none, if there is no file. It leaves out a line that an interrupted run has
// not written completely: the last one, or one directly behind which the next run has begun its first line. An error
// names any other line that is no result.
func readResults(path string) (all []result, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	lines := bytes.Split(text, []byte("\n"))
	for i, line := range lines {
		if len(line) == 0 {
			continue
		}
		var r result
		err := json.Unmarshal(line, &r)
		if last := i+1 == len(lines) || len(lines[i+1]) > 0; err != nil && last && unfinished(line) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: the line is no result: %w; correct or delete it", path, i+1, err)
		}
		all = append(all, r)
	}
	return all, nil
}

// unfinished reports whether a line is only the beginning of a JSON object.
func unfinished(line []byte) bool {
	err := json.NewDecoder(bytes.NewReader(line)).Decode(new(result))
	return line[0] == '{' && errors.Is(err, io.ErrUnexpectedEOF)
}

// appendResult adds a result to a file. It begins with a line feed, so that a line that was not
// written completely damages no other.
func appendResult(path string, r result) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	text, err := json.Marshal(r)
	if err == nil {
		_, err = file.Write(append(append([]byte{'\n'}, text...), '\n'))
	}
	return errors.Join(err, file.Close())
}

// find returns the result of a row, pair and system with these settings.
func find(all []result, row string, pair int, system string, s settings) *result {
	for i, r := range all {
		if r.Row == row && r.Pair == pair && r.System == system && r.Settings.same(s) {
			return &all[i]
		}
	}
	return nil
}
