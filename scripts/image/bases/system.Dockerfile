# A minimal Debian, from the archive that debootstrap has made, with the certificate authorities that this machine trusts.
FROM scratch
ADD system.tar /
COPY authorities/ /usr/local/share/ca-certificates/
RUN update-ca-certificates
