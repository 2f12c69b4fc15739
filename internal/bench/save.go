package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Result is a measurement with what one must know to read it later.
type Result struct {
	Began    time.Time         `json:"began"`
	Servers  []ServerVersion   `json:"servers,omitempty"`
	Settings map[string]string `json:"settings"` // the flags of the measurement
	Client   string            `json:"client"`   // version of this program
	System   string            `json:"system"`   // the client's
	Cores    int               `json:"cores"`    // the client's
	Reports  []ReportJSON      `json:"reports"`
}

// ServerVersion says what a measured server is.
type ServerVersion struct {
	Address string `json:"address"`
	Version string `json:"version,omitempty"`
	Mode    string `json:"mode,omitempty"`
}

// ReportJSON is a report in a form for programs. Latencies and processor times are in
// microseconds; processor times are those of one operation. A report without latencies has none.
type ReportJSON struct {
	Kind       string       `json:"kind"`
	PerSecond  float64      `json:"per_second"`
	Operations int64        `json:"operations"`
	ElapsedMS  int64        `json:"elapsed_ms"`
	MinUS      int64        `json:"min_us,omitempty"`
	P50US      int64        `json:"p50_us,omitempty"`
	P99US      int64        `json:"p99_us,omitempty"`
	P999US     int64        `json:"p999_us,omitempty"`
	MaxUS      int64        `json:"max_us,omitempty"`
	MeanUS     int64        `json:"mean_us,omitempty"`
	WarmupMS   int64        `json:"warmup_ms"`
	Rate       int          `json:"rate,omitempty"`
	Unsent     int64        `json:"unsent,omitempty"`
	TimerUS    int64        `json:"timer_late_p99_us,omitempty"`
	ClientUS   float64      `json:"client_cpu_us,omitempty"`
	ServerUS   *float64     `json:"server_cpu_us,omitempty"`
	Memory     int64        `json:"server_bytes,omitempty"` // resident memory of the servers at the end
	Figures    []Figure     `json:"figures,omitempty"`
	Percents   []Percentile `json:"percentiles,omitempty"`
}

// Percentile is one point of a distribution of latencies.
type Percentile struct {
	Percent float64 `json:"percent"`
	US      int64   `json:"us"`
}

// JSON returns the report in a form for programs.
func (r *Report) JSON() ReportJSON {
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	j := ReportJSON{
		Kind: r.Kind, PerSecond: r.PerSecond(), Operations: r.Operations, ElapsedMS: r.Elapsed.Milliseconds(),
		MinUS: r.Min.Microseconds(), P50US: r.P50.Microseconds(), P99US: r.P99.Microseconds(), P999US: r.P999.Microseconds(),
		MaxUS: r.Max.Microseconds(), MeanUS: r.Mean.Microseconds(), WarmupMS: r.Warmup.Milliseconds(),
		Rate: r.Rate, Unsent: r.Unsent, TimerUS: r.TimerLate.Microseconds(), Figures: r.Figures,
		Memory:   r.ServerMemory,
		ClientUS: us(r.PerOperation(r.ClientCPU)),
	}
	if r.ServerKnown {
		server := us(r.PerOperation(r.ServerCPU))
		j.ServerUS = &server
	}
	return j
}

// percents are the points of a distribution that a result and a chart show.
var percents = []float64{0, 50, 75, 90, 95, 99, 99.5, 99.9, 99.95, 99.99, 100}

func (r *Report) distribution() (all []Percentile) {
	if r.took == nil || r.took.h.TotalCount() == 0 {
		return nil
	}
	for _, p := range percents {
		all = append(all, Percentile{p, r.took.at(p).Microseconds()})
	}
	return all
}

// NewResult returns a result with the reports, and what is known of this machine.
func NewResult(began time.Time, reports []*Report) *Result {
	result := &Result{Began: began.UTC(), System: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU()}
	if build, ok := debug.ReadBuildInfo(); ok {
		result.Client = build.Main.Version + " " + build.GoVersion
	}
	for _, r := range reports {
		j := r.JSON()
		j.Percents = r.distribution()
		result.Reports = append(result.Reports, j)
	}
	return result
}

// Files are the files of a run, which are created before the measurement, so that it is
// not in vain if they cannot be created.
type Files struct {
	base  string // path without the ending of the name
	files map[string]*os.File
}

// endings are what the names of a run's files end with.
var endings = []string{".json", ".hlog", ".svg"}

// CreateFiles creates the files of a run in a directory, which is created if it is missing.
// Their names begin with the kind and the time. It replaces no file.
func CreateFiles(dir, kind string, began time.Time) (*Files, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f := &Files{filepath.Join(dir, kind+"-"+began.UTC().Format("20060102-150405.000")), map[string]*os.File{}}
	for _, ending := range endings {
		file, err := os.OpenFile(f.base+ending, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return nil, errors.Join(err, f.Discard())
		}
		f.files[ending] = file
	}
	return f, nil
}

// String returns the names of the files.
func (f *Files) String() string { return f.base + ".{json,hlog,svg}" }

// Discard removes the files.
func (f *Files) Discard() error {
	var errs []error
	for ending, file := range f.files {
		file.Close()
		if err := os.Remove(f.base + ending); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Save writes the result as JSON, the histograms in HdrHistogram's log format, and a chart of
// the latencies. If that fails, it removes all of the files.
func (f *Files) Save(result *Result, reports []*Report) error {
	chart, err := chartOf(reports)
	if err == nil {
		err = f.write(".svg", func(w io.Writer) error { _, err := w.Write(chart); return err })
	}
	if err == nil {
		err = f.write(".hlog", func(w io.Writer) error { return writeHistograms(w, result.Began, reports) })
	}
	if err == nil {
		err = f.write(".json", func(w io.Writer) error {
			enc := json.NewEncoder(w)
			enc.SetIndent("", "  ")
			return enc.Encode(result)
		})
	}
	if err != nil {
		return errors.Join(err, f.Discard())
	}
	return nil
}

// write writes one file and makes it durable.
func (f *Files) write(ending string, content func(io.Writer) error) error {
	file := f.files[ending]
	if err := content(file); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	return file.Close()
}

// writeHistograms writes the histograms of all reports, each with the report's kind as its tag.
func writeHistograms(w io.Writer, began time.Time, reports []*Report) error {
	log := hdrhistogram.NewHistogramLogWriter(w)
	err := errors.Join(log.OutputLogFormatVersion(),
		log.OutputComment(fmt.Sprintf("[latencies in nanoseconds, interval maxima in milliseconds; began %s]", began.Format(time.RFC3339))),
		log.OutputStartTime(began.UnixMilli()), log.OutputLegend())
	for _, r := range reports {
		if r.took == nil || err != nil {
			continue
		}
		r.took.h.SetTag(tagOf(r.Kind))
		r.took.h.SetStartTimeMs(began.UnixMilli())
		r.took.h.SetEndTimeMs(began.Add(r.Elapsed).UnixMilli())
		err = log.OutputIntervalHistogram(r.took.h)
	}
	return err
}

// tagOf returns a kind without the characters that a tag may not have.
func tagOf(kind string) string {
	tag := []rune(kind)
	for i, c := range tag {
		if c == ' ' || c == ',' || c == ':' {
			tag[i] = '-'
		}
	}
	return string(tag)
}
