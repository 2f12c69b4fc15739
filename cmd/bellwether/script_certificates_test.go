package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"bellwether/internal/authority"
)

// issued makes an authority and certificates as tls init would have done some days ago.
func issued(ts *testscript.TestScript, neg bool, args []string) {
	refuse(ts, neg, args, 3, "issued DAYS DIR ID=HOST CLIENT…")
	days, err := strconv.Atoi(args[0])
	ts.Check(err)
	id, host, _ := strings.Cut(args[2], "=")
	plan := authority.Plan{Dir: ts.MkAbs(args[1]), Now: time.Now().AddDate(0, 0, -days), Subjects: []authority.Subject{
		{File: "server." + id + ".pem", Name: "server." + id, Hosts: []string{host}},
	}}
	for _, client := range args[3:] {
		plan.Subjects = append(plan.Subjects, authority.Subject{File: "client-" + client + ".pem", Name: client})
	}
	_, err = authority.Init(plan)
	ts.Check(err)
}
