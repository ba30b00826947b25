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

// certificateAge is the time for which the metrics endpoint serves a certificate before it
// reads the files again. A kubelet takes up to a minute to put a renewed Secret into a volume.
const certificateAge = 10 * time.Second

// certificate is the certificate of the metrics endpoint. Its files are read again when a
// client connects, without a watch: the certificate watcher of controller-runtime needs an
// inotify instance, of which a node has 128 per user, and the manager would exit where other
// pods use all of them.
type certificate struct {
	cert, key string
	now       func() time.Time

	mu     sync.Mutex
	pair   *tls.Certificate
	readAt time.Time
}

// readCertificate returns the certificate of two PEM files, or an error if they are not a valid
// pair.
func readCertificate(cert, key string, now func() time.Time) (*certificate, error) {
	c := &certificate{cert: cert, key: key, now: now}
	return c, c.read()
}

// get implements tls.Config.GetCertificate. While the files are not a valid pair, for example
// because only one of them has been renewed, the last valid pair is served.
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

// read sets the pair from the files if they are valid, and the time of reading in any case.
func (c *certificate) read() error {
	c.readAt = c.now()
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("read the certificate: %w", err)
	}
	c.pair = &pair
	return nil
}
