// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package seed fills a sandbox with large numbers of objects for measurements. The objects look
// like those in a cluster that has been running for a long time.
package seed

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// Etcd writes complete objects, including their status, directly to etcd. Through the API server a
// running pod needs a create request and four status updates, which would take a quarter of an hour
// for a large cluster before any measurement. Watchers see the same objects either way.
type Etcd struct {
	url    string
	client *http.Client
}

// txnSize is the maximum number of writes in an etcd transaction.
const txnSize = 128

// Open connects to the etcd of a running sandbox with etcd's client certificate.
func Open(t *testing.T, c *framework.Cluster) *Etcd {
	t.Helper()
	var settings struct{ EtcdPort int }
	text, err := os.ReadFile(filepath.Join(c.Dir, "sandbox.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &settings); err != nil {
		t.Fatal(err)
	}
	pki := filepath.Join(c.Dir, "pki")
	pair, err := tls.LoadX509KeyPair(filepath.Join(pki, "etcd-client.crt"), filepath.Join(pki, "etcd-client.key"))
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(filepath.Join(pki, "etcd-ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	return &Etcd{
		url:    fmt.Sprintf("https://127.0.0.1:%d/v3/kv/txn", settings.EtcdPort),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8, TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots}}},
	}
}

// Operation is a write to a key in etcd, or the deletion of the key if the value is nil.
type Operation struct {
	Key   string
	Value []byte
}

// Write executes all operations in one revision of etcd.
func (e *Etcd) Write(operations []Operation) error {
	type request struct {
		Put    map[string][]byte `json:"requestPut,omitempty"`
		Delete map[string][]byte `json:"requestDeleteRange,omitempty"`
	}
	var requests []request
	for _, o := range operations {
		if o.Value == nil {
			requests = append(requests, request{Delete: map[string][]byte{"key": []byte(o.Key)}})
		} else {
			requests = append(requests, request{Put: map[string][]byte{"key": []byte(o.Key), "value": o.Value}})
		}
	}
	body, err := json.Marshal(map[string]any{"success": requests})
	if err != nil {
		return err
	}
	response, err := e.client.Post(e.url, "application/json", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("write to etcd: %w", err)
	}
	defer response.Body.Close()
	if answer, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("write to etcd: %s: %s, %w", response.Status, answer, err)
	}
	return nil
}

// Encode encodes an object in the API server's storage format.
func Encode(o runtime.Object, version schema.GroupVersion) ([]byte, error) {
	serializer := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	return runtime.Encode(scheme.Codecs.EncoderForVersion(serializer, version), o)
}

// PodKey returns the etcd key of a pod.
func PodKey(pod *corev1.Pod) string { return "/registry/pods/" + pod.Namespace + "/" + pod.Name }
