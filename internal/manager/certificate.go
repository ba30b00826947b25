// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"crypto/tls"
	"fmt"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

// certificateAge is the time for which a certificate is served before its files are read again. It
// adds little to the delay of a renewal, because the kubelet takes up to a minute to update a
// Secret in a volume.
const certificateAge = 10 * time.Second

// certificate is the certificate of the metrics endpoint. Its files are read again when a client
// connects. controller-runtime's certificate watcher is not used, because it needs an inotify
// instance: the manager would exit if other pods had exhausted the node's limit of 128 instances
// per user.
type certificate struct {
	cert, key string
	now       func() time.Time

	mu     sync.Mutex
	pair   *tls.Certificate
	readAt time.Time
}

// readCertificate reads a certificate and its key from two PEM files. It returns an error if they
// are not a valid pair.
func readCertificate(cert, key string, now func() time.Time) (*certificate, error) {
	c := &certificate{cert: cert, key: key, now: now}
	return c, c.read()
}

// get implements tls.Config.GetCertificate. If the files are not a valid pair, for example because
// only one file has been renewed yet, it returns the last valid pair.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if age := c.now().Sub(c.readAt); age < 0 || age >= certificateAge {
		if err := c.read(); err != nil {
			ctrl.Log.WithName("metrics").Error(err, "Cannot read the renewed certificate; still serving the previous certificate")
		}
	}
	return c.pair, nil
}

// read reads the certificate and its key from the files, and sets readAt. If they are not a valid
// pair, it returns an error and keeps the previous pair.
func (c *certificate) read() error {
	c.readAt = c.now()
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("read the certificate: %w", err)
	}
	c.pair = &pair
	return nil
}
