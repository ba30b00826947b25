// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"tidekeeper.dev/tidekeeper/sandbox/internal/dns"
)

const (
	// resolverFile is the configuration of the C library's and Go's resolvers of names, and
	// ownResolver the name of the program's version in the directory Pod.Files.
	resolverFile = "/etc/resolv.conf"
	ownResolver  = "resolv.conf"
	// nameServer is the address of the DNS server in the program's network.
	nameServer = "127.0.0.1:53"
)

// resolver returns the content of a pod's resolverFile, as a kubelet writes it for the policy
// ClusterFirst.
func resolver(namespace string) string {
	return fmt.Sprintf("nameserver 127.0.0.1\nsearch %[1]s.svc.%[2]s svc.%[2]s %[2]s\noptions ndots:5\n", namespace, dns.Domain)
}

// replaceFile shows the program the file "source" at the path "target". Call mount first.
func replaceFile(target, source string) error {
	existing, rest, err := split(target)
	if err == nil && rest == "" {
		err = unix.Mount(source, existing, "", unix.MS_BIND, "")
	} else if err == nil {
		err = addFile(existing, filepath.Join(existing, rest), source)
	}
	if err != nil {
		return fmt.Errorf("%s for the program: %w", target, err)
	}
	return nil
}

// addFile copies a file to a path that does not exist, or is a symbolic link to nothing, below an
// existing directory.
func addFile(existing, target, source string) error {
	if err := cover(existing); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Clean(source))
	if err != nil {
		return err
	}
	if err := os.Remove(target); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return os.WriteFile(target, text, 0o644)
}

// clusterNetwork contains the addresses of all pods and Services of a sandbox.
var clusterNetwork = netip.MustParsePrefix("10.0.0.1/8")
