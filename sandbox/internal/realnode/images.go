// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ociv1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// PauseImage is the name of the image of each pod's pause container, which keeps the pod's
// namespaces alive.
const PauseImage = "sandbox.tidekeeper.dev/pause:1"

// ImageUser is the user and the group that run the program in an image. The user is not root, and
// both are numeric because the images have no /etc/passwd.
const ImageUser = "65532:65532"

// FullName returns an image's full name with registry and tag, as containerd uses it.
func FullName(name string) (string, error) {
	named, err := reference.ParseDockerRef(name)
	if err != nil {
		return "", fmt.Errorf("the image %q: %w", name, err)
	}
	return named.String(), nil
}

// ArchiveName returns the file name of an image's archive. It is derived from a hash of the image's
// full name, which itself is not a valid file name.
func ArchiveName(fullName string) string {
	sum := sha256.Sum256([]byte(fullName))
	return hex.EncodeToString(sum[:8]) + ".tar"
}

// checkStatic returns an error if the program is not statically linked.
func checkStatic(program string) error {
	f, err := elf.Open(program)
	if err != nil {
		return fmt.Errorf("%s is neither a program for Linux nor an image archive, whose name ends in .tar: %w", program, err)
	}
	defer f.Close()
	for _, part := range f.Progs {
		if part.Type == elf.PT_INTERP {
			return fmt.Errorf("%s needs shared libraries, and there are none in its image: build it with CGO_ENABLED=0", program)
		}
	}
	return nil
}

// WriteImage writes an archive of an image that contains a single program. For the same program and
// name, the archive is always the same. The name must be a full name.
func WriteImage(w io.Writer, name, program string) error {
	if err := checkStatic(program); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Clean(program))
	if err != nil {
		return err
	}
	inside := "/" + filepath.Base(program)
	var layer bytes.Buffer
	if err := writeTar(&layer, []entry{{name: strings.TrimPrefix(inside, "/"), mode: 0o755, data: data}}); err != nil {
		return err
	}
	config, err := json.Marshal(ociv1.Image{
		Platform: ociv1.Platform{Architecture: runtime.GOARCH, OS: "linux"},
		Config:   ociv1.ImageConfig{User: ImageUser, Entrypoint: []string{inside}},
		RootFS:   ociv1.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(layer.Bytes())}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal(ociv1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: ociv1.MediaTypeImageManifest,
		Config:    descriptor(ociv1.MediaTypeImageConfig, config),
		Layers:    []ociv1.Descriptor{descriptor(ociv1.MediaTypeImageLayer, layer.Bytes())},
	})
	if err != nil {
		return err
	}
	root := descriptor(ociv1.MediaTypeImageManifest, manifest)
	root.Annotations = nameAnnotations(name)
	root.Platform = &ociv1.Platform{Architecture: runtime.GOARCH, OS: "linux"}
	index, err := json.Marshal(ociv1.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ociv1.MediaTypeImageIndex, Manifests: []ociv1.Descriptor{root},
	})
	if err != nil {
		return err
	}
	layout, err := json.Marshal(ociv1.ImageLayout{Version: ociv1.ImageLayoutVersion})
	if err != nil {
		return err
	}
	entries := []entry{{name: ociv1.ImageLayoutFile, mode: 0o644, data: layout}, {name: ociv1.ImageIndexFile, mode: 0o644, data: index}}
	for _, blob := range [][]byte{manifest, config, layer.Bytes()} {
		entries = append(entries, entry{name: "blobs/sha256/" + digest.FromBytes(blob).Encoded(), mode: 0o644, data: blob})
	}
	return writeTar(w, entries)
}

func descriptor(mediaType string, data []byte) ociv1.Descriptor {
	return ociv1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
}

// entry is a file in a tar archive.
type entry struct {
	name string
	mode int64
	data []byte
}

func writeTar(w io.Writer, entries []entry) error {
	archive := tar.NewWriter(w)
	for _, e := range entries {
		if err := archive.WriteHeader(&tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.data)), Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		if _, err := archive.Write(e.data); err != nil {
			return err
		}
	}
	return archive.Close()
}

// WriteLayout copies an image archive, which must be an OCI layout with a single image, and sets
// the image's full name. It adds a second name with the image's digest instead of a tag, for pods
// that refer to the image by digest.
func WriteLayout(w io.Writer, name, archive string) error {
	in, err := os.Open(filepath.Clean(archive))
	if err != nil {
		return err
	}
	defer in.Close()
	out := tar.NewWriter(w)
	found := false
	for r := tar.NewReader(in); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s is not an image archive (an OCI layout as a tar): %w", archive, err)
		}
		content := io.Reader(r)
		if path.Clean(header.Name) == ociv1.ImageIndexFile {
			data, err := nameLayout(r, name)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", archive, header.Name, err)
			}
			found, header.Size, content = true, int64(len(data)), bytes.NewReader(data)
		}
		if err := out.WriteHeader(header); err != nil {
			return err
		}
		if _, err := io.Copy(out, content); err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
	}
	if !found {
		return fmt.Errorf("%s has no %s: it is not an OCI layout", archive, ociv1.ImageIndexFile)
	}
	return out.Close()
}

// maxIndex is the maximum size of an image archive's index, in bytes.
const maxIndex = 4 << 20

// nameLayout reads the index of an OCI layout with a single image. It returns the index with the
// image listed twice: with the given name, and with this name and the image's digest instead of the
// tag.
func nameLayout(r io.Reader, name string) ([]byte, error) {
	var index ociv1.Index
	if err := json.NewDecoder(io.LimitReader(r, maxIndex)).Decode(&index); err != nil {
		return nil, err
	}
	if len(index.Manifests) != 1 {
		return nil, fmt.Errorf("it has %d images, want one", len(index.Manifests))
	}
	named, err := reference.ParseDockerRef(name)
	if err != nil {
		return nil, err
	}
	image := index.Manifests[0]
	byDigest, err := reference.WithDigest(reference.TrimNamed(named), image.Digest)
	if err != nil {
		return nil, err
	}
	index.Manifests = nil
	for _, full := range []string{named.String(), byDigest.String()} {
		image.Annotations = nameAnnotations(full)
		index.Manifests = append(index.Manifests, image)
	}
	return json.Marshal(index)
}

// nameAnnotations returns the annotations that contain an image's name. The annotation
// io.containerd.image.name is for containerd, and the standard OCI annotation is for other
// programs.
func nameAnnotations(name string) map[string]string {
	return map[string]string{"io.containerd.image.name": name, ociv1.AnnotationRefName: name}
}

// StoreImage writes the archive of a named image to a directory, and returns the archive's path. If
// source is a file whose name ends in .tar, it is an archive to copy; otherwise, it is a program.
// An existing image with the same name is replaced.
func StoreImage(dir, name, source string) (string, error) {
	full, err := FullName(name)
	if err != nil {
		return "", err
	}
	write := WriteImage
	if strings.HasSuffix(source, ".tar") {
		write = WriteLayout
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	temporary, err := os.CreateTemp(dir, ".image.*")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, ArchiveName(full))
	err = errors.Join(write(temporary, full, source), temporary.Close())
	if err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(temporary.Name()))
	}
	return file, nil
}

// Load makes a node import an image archive. The parameter "socket" is the path of the node's
// socket, and "file" is the path of the archive in the node's image directory.
func Load(ctx context.Context, socket, file string) error {
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://node/images?file="+url.QueryEscape(file), nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		return errors.New(strings.TrimSpace(string(text)))
	}
	return nil
}
