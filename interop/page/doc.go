// Package page tests the web page of the admin port in headless Chromium, with real clicks
// and keys, against an ensemble of three server processes. screenshots_test.go makes the
// screenshots of the documentation (make screenshots).
package page
