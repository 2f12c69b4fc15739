package main

import (
	"log/slog"

	"bellwether/internal/admin/api"
	"bellwether/internal/admin/history"
	"bellwether/internal/admin/operate"
	webpage "bellwether/internal/admin/page"
	"bellwether/internal/admin/view"
	"bellwether/internal/admin/web"
	"bellwether/internal/server"
)

// plugPage adds the page, the API and the history of the last hour to the options of an admin port.
func plugPage(o *web.Options, s *server.Server, log *slog.Logger) error {
	v, changes, hour := view.New(s, zookeeperVersion()), operate.New(s), history.New(s)
	p, err := webpage.New(webpage.Options{Server: s, View: v, Changes: changes, History: hour, Version: zookeeperVersion(), Log: log})
	if err != nil {
		return err
	}
	o.API, o.Page, o.SignIn = api.New(api.Options{Server: s, View: v, Changes: changes, History: hour, Log: log}), p, p.SignIn
	o.Collect = hour.Run
	return nil
}
