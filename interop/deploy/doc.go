// Package deploy tests the folder deploy/ of the repository with Debian's Prometheus: the
// alert rules by promtool, and every expression of the dashboard and of the rules against a
// real ensemble of three servers under load.
package deploy
