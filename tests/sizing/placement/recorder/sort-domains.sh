#!/bin/sh
# Copies Karpenter to a folder with one change, and writes a go.mod that uses the copy: where Karpenter walks a map or a set of topology
# domains and takes the first of several equal ones, the copy walks them by name. Its answer is one of those that the unchanged code can
# give, and always the same.
set -eu
folder="${1:?usage: sort-domains.sh FOLDER (empty or new, as an absolute path)}"
mkdir -p "$folder"
cp -r "$(go list -m -f '{{.Dir}}' sigs.k8s.io/karpenter)" "$folder/karpenter"
chmod -R u+w "$folder/karpenter"
sed -i -e 's/for domain := range t\.domains {/for _, domain := range slices.Sorted(maps.Keys(t.domains)) {/' \
    -e 's/for _, domain := range nodeDomains\.Values() {/for _, domain := range slices.Sorted(slices.Values(nodeDomains.Values())) {/' \
    -e 's/^\t"fmt"$/\t"fmt"\n\t"maps"\n\t"slices"/' "$folder/karpenter/pkg/controllers/provisioning/scheduling/topologygroup.go"
cp go.sum "$folder/go.sum"
sed "\$a replace sigs.k8s.io/karpenter => $folder/karpenter" go.mod > "$folder/go.mod"
