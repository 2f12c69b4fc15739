package scrape

import (
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	// scrapesMax is how many scrapes are answered at the same time. Further ones get status 503.
	scrapesMax = 4
	// scrapeMax is how long a scrape may take before it gets status 503.
	scrapeMax = 10 * time.Second
)

// Options say what the page shows.
type Options struct {
	Metrics prometheus.Collector // the server's registry; required
	Version string               // of the program
	Process bool                 // show metrics of the process too
	Memory  int64                // bytes of memory that the process may use; 0: not known
	Log     *slog.Logger         // receives errors; nil: nothing is logged
}

// Handler returns the page. It accepts the query name[]=METRIC, as ZooKeeper's page does, to
// show only some metrics.
func Handler(o Options) http.Handler {
	r := registry(o)
	opts := promhttp.HandlerOpts{MaxRequestsInFlight: scrapesMax, Timeout: scrapeMax, CoalesceGather: true}
	if o.Log != nil {
		opts.ErrorLog = errorLog{o.Log}
	}
	page := promhttp.HandlerFor(r, opts)
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch q.Method {
		case http.MethodGet, http.MethodHead, http.MethodPost: // ZooKeeper's page answers POST too
			page.ServeHTTP(w, q)
		default:
			w.Header().Set("Allow", "GET, HEAD, POST")
			http.Error(w, "/metrics answers only GET, HEAD and POST", http.StatusMethodNotAllowed)
		}
	})
}

// registry returns everything that the page shows.
func registry(o Options) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(o.Metrics, buildInfo(o.Version))
	if o.Process {
		r.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector(), newJVM(o.Memory))
	}
	return r
}

// buildInfo returns a metric of value 1 whose labels say what is running.
func buildInfo(version string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "bellwether_build_info", Help: "bellwether_build_info",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	}, func() float64 { return 1 })
}

// errorLog logs the errors of the library, each as one line.
type errorLog struct{ log *slog.Logger }

func (l errorLog) Println(v ...any) {
	var b strings.Builder
	for i, x := range v {
		if i > 0 {
			b.WriteByte(' ')
		}
		if err, ok := x.(error); ok {
			x = strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		if s, ok := x.(string); ok {
			b.WriteString(s)
		}
	}
	l.log.Warn("metrics page: " + b.String())
}
