// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"regexp"
	"testing"
)

// proxyByName matches a setting of GOPROXY that contains the host of a module proxy.
var proxyByName = regexp.MustCompile(`GOPROXY=[^\n ]*https?://`)

// TestNoModuleProxyIsNamed checks that pages and scripts do not choose a module proxy, which is up
// to the user's machine.
func TestNoModuleProxyIsNamed(t *testing.T) {
	for file, text := range contents(t, func(file string) bool { return filepath.Ext(file) != ".png" }) {
		if found := proxyByName.Find(text); found != nil {
			t.Errorf("%s: %q: use $(go env GOPROXY) for the proxies of the machine", file, found)
		}
	}
}
