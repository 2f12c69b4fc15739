package view

import (
	"path/filepath"
	"runtime"

	"bellwether/internal/ensemble"
)

// Server describes this server.
type Server struct {
	Member   Member   `json:"member"`
	Counts   Counts   `json:"counts"`
	Requests Requests `json:"requests"`
	DataDir  string   `json:"data_dir"`
	LogDir   string   `json:"log_dir"`
	Go       string   `json:"go"` // version of Go that has compiled the program
}

// Requests counts the packets from and to clients since the figures were last reset.
type Requests struct {
	Received int64 `json:"received"`
	Sent     int64 `json:"sent"`
}

// Server returns what this server knows about itself.
func (v *View) Server() *Server {
	c, st := v.srv.Config(), v.srv.Status()
	m := ensemble.Server{}
	if !c.Standalone() {
		m, _ = c.Ensemble.Members.Server(c.Ensemble.ID)
	}
	return &Server{
		Member: v.self(m), Counts: v.counts(), Requests: Requests{st.Received, st.Sent},
		DataDir: absolute(c.DataDir), LogDir: absolute(c.DataLogDir), Go: runtime.Version(),
	}
}

func absolute(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}
