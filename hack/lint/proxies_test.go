// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"regexp"
	"testing"
)

// proxyByName is a setting of GOPROXY that names the host of a proxy.
var proxyByName = regexp.MustCompile(`GOPROXY=[^\n ]*https?://`)

// Pages and scripts leave the choice of a module proxy to the machine that they run on.
func TestNoModuleProxyIsNamed(t *testing.T) {
	for file, text := range contents(t, func(file string) bool { return filepath.Ext(file) != ".png" }) {
		if found := proxyByName.Find(text); found != nil {
			t.Errorf("%s: %q: use $(go env GOPROXY) for the proxies of the machine", file, found)
		}
	}
}
