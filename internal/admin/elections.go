package admin

import (
	"encoding/json"

	"bellwether/internal/admin/elog"
	"bellwether/internal/server"
)

// elections answers the word elog, which ZooKeeper does not have: the server's last
// elections as a JSON array, oldest first. It is empty on a standalone server.
func elections(_ *Admin, s *server.Server) string {
	b, err := json.Marshal(Elections(s))
	if err != nil {
		return err.Error() + "\n" // unreachable: values of these types can always be encoded
	}
	return string(b) + "\n"
}

// Elections returns the last elections as the server saw them, oldest first.
func Elections(s *server.Server) []elog.Election {
	all := []elog.Election{}
	for _, e := range s.Elections() {
		all = append(all, elog.From(&e.Record, e.Began))
	}
	return all
}
