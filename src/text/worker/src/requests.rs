//! Frames on the socket, as worker_protocol.h describes them, and what is done for each.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::str::from_utf8;
use std::sync::Arc;

use llguidance::Matcher;

use crate::chat::ChatTemplate;
use crate::grammar::{self, Grammars};
use crate::limits;
use crate::plain_words::plain;
use crate::stream::Stream;
use crate::tokenizer::{Place, Tokenizer};
use crate::Failure;

/// What the first request opened.
enum Service {
    None,
    Template(ChatTemplate),
    Tokenizer { tokenizer: Arc<Tokenizer>, streams: HashMap<u32, Stream> },
    Grammars { grammars: Grammars, matchers: HashMap<u32, Matcher> },
}

/// The fields of a request, from the front; the text that many end with is what remains.
struct Fields<'a>(&'a [u8]);

fn bad(message: impl ToString) -> Failure {
    Failure::Bad(message.to_string())
}

impl<'a> Fields<'a> {
    fn bytes(&mut self, size: usize) -> Result<&'a [u8], Failure> {
        let (field, rest) = self.0.split_at_checked(size).ok_or_else(|| bad("a short request"))?;
        self.0 = rest;
        Ok(field)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Failure> {
        self.bytes(N)?.try_into().map_err(bad)
    }

    fn flag(&mut self) -> Result<bool, Failure> {
        Ok(self.array::<1>()? != [0])
    }

    fn u32(&mut self) -> Result<u32, Failure> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn i64(&mut self) -> Result<i64, Failure> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    fn text(&mut self, size: usize) -> Result<&'a str, Failure> {
        from_utf8(self.bytes(size)?)
            .map_err(|e| bad(format!("not UTF-8: invalid byte at offset {}", e.valid_up_to())))
    }

    fn sized_text(&mut self) -> Result<&'a str, Failure> {
        let size = self.u32()?;
        self.text(size as usize)
    }

    fn rest_text(&mut self) -> Result<&'a str, Failure> {
        self.text(self.0.len())
    }

    fn rest_ids(&mut self) -> Vec<u32> {
        let ids = self.0.chunks_exact(4);
        ids.map(|id| u32::from_le_bytes(id.try_into().unwrap_or_default())).collect()
    }
}

fn ids_reply(ids: &[u32]) -> Vec<u8> {
    ids.iter().flat_map(|id| id.to_le_bytes()).collect()
}

/// What a stream or a matcher that is open says.
fn known(bytes: &[u8]) -> Vec<u8> {
    [&[1], bytes].concat()
}

fn open_tokenizer(fields: &mut Fields) -> Result<(Service, Vec<u8>), Failure> {
    let framed = fields.flag()?;
    let (bos, eos) = (fields.sized_text()?, fields.sized_text()?);
    let mut tokenizer = Tokenizer::new(fields.rest_text()?)?;
    if framed {
        tokenizer.set_bos_eos(bos, eos)?;
    }
    tokenizer.check_frame()?;
    let mut reply = (tokenizer.vocab_size() as u64).to_le_bytes().to_vec();
    reply.extend(ids_reply(&tokenizer.special_ids()));
    Ok((Service::Tokenizer { tokenizer: Arc::new(tokenizer), streams: HashMap::new() }, reply))
}

fn open_grammars(fields: &mut Fields) -> Result<Service, Failure> {
    let count = fields.u32()?;
    let eos = (0..count).map(|_| fields.u32()).collect::<Result<Vec<_>, _>>()?;
    let grammars = match fields.rest_text()? {
        "" => Grammars::of_bytes()?,
        json => Grammars::new(&Arc::new(Tokenizer::new(json)?), &eos)?,
    };
    Ok(Service::Grammars { grammars, matchers: HashMap::new() })
}

impl Service {
    fn reply(&mut self, fields: &mut Fields) -> Result<Vec<u8>, Failure> {
        limits::allow_time(fields.u32()?);
        let [kind] = fields.array()?;
        self.answer(kind, fields)
    }

    fn answer(&mut self, kind: u8, fields: &mut Fields) -> Result<Vec<u8>, Failure> {
        match (kind, self) {
            (b'O', service @ Service::None) => {
                let (opened, reply) = open_tokenizer(fields)?;
                *service = opened;
                Ok(reply)
            }
            (b'C', service @ Service::None) => {
                *service = Service::Template(ChatTemplate::new(fields.rest_text()?)?);
                Ok(Vec::new())
            }
            (b'G', service @ Service::None) => {
                *service = open_grammars(fields)?;
                Ok(Vec::new())
            }
            (b'R', Service::Template(chat)) => {
                let now_unix_s = fields.i64()?;
                Ok(chat.render(fields.rest_text()?, now_unix_s)?.into_bytes())
            }
            (_, Service::Tokenizer { tokenizer, streams }) => {
                answer_tokenizer(tokenizer, streams, kind, fields)
            }
            (_, Service::Grammars { grammars, matchers }) => {
                answer_grammars(grammars, matchers, kind, fields)
            }
            _ => Err(bad("a request out of place")),
        }
    }
}

fn answer_tokenizer(
    tokenizer: &Arc<Tokenizer>,
    streams: &mut HashMap<u32, Stream>,
    kind: u8,
    fields: &mut Fields,
) -> Result<Vec<u8>, Failure> {
    match kind {
        b'E' => {
            let place = Place { first: fields.flag()?, last: fields.flag()? };
            let add_special_tokens = fields.flag()?;
            let (ids, bytes) =
                tokenizer.encode_piece(fields.rest_text()?, place, add_special_tokens)?;
            Ok([&(bytes as u64).to_le_bytes()[..], &ids_reply(&ids)].concat())
        }
        b'D' => {
            let skip_special_tokens = fields.flag()?;
            Ok(tokenizer.decode(&fields.rest_ids(), skip_special_tokens)?.into_bytes())
        }
        b'I' => {
            let mut reply = Vec::new();
            let (first, count) = (fields.u32()?, fields.u32()?);
            for id in first..first.saturating_add(count) {
                let token = tokenizer.id_to_token(id);
                reply.push(u8::from(token.is_some()));
                let token = token.unwrap_or_default();
                reply.extend((token.len() as u32).to_le_bytes());
                reply.extend(token.as_bytes());
            }
            Ok(reply)
        }
        b'T' => Ok(ids_reply(tokenizer.token_to_id(fields.rest_text()?).as_slice())),
        b'S' => {
            let (number, skip_special_tokens) = (fields.u32()?, fields.flag()?);
            let mut stream = Stream::new(Arc::clone(tokenizer), skip_special_tokens);
            for id in fields.rest_ids() {
                stream.push(id)?;
            }
            streams.insert(number, stream);
            Ok(Vec::new())
        }
        b'P' => {
            let Some(stream) = streams.get_mut(&fields.u32()?) else { return Ok(vec![0]) };
            Ok(known(stream.push(fields.u32()?)?.as_bytes()))
        }
        b'F' => {
            let Some(stream) = streams.get_mut(&fields.u32()?) else { return Ok(vec![0]) };
            Ok(known(stream.flush()?.as_bytes()))
        }
        b'X' => {
            streams.remove(&fields.u32()?);
            Ok(Vec::new())
        }
        _ => Err(bad("an unknown request")),
    }
}

fn answer_grammars(
    grammars: &Grammars,
    matchers: &mut HashMap<u32, Matcher>,
    kind: u8,
    fields: &mut Fields,
) -> Result<Vec<u8>, Failure> {
    let number = fields.u32()?;
    match kind {
        b'J' => {
            let before = limits::used_time();
            matchers.insert(number, grammars.matcher(fields.rest_text()?)?);
            let took = limits::used_time() - before;
            Ok((took.as_millis() as u32).to_le_bytes().to_vec())
        }
        b'M' => {
            let Some(matcher) = matchers.get_mut(&number) else { return Ok(vec![0]) };
            Ok(known(&grammar::mask(matcher, &fields.rest_ids())?))
        }
        b'X' => {
            matchers.remove(&number);
            Ok(Vec::new())
        }
        _ => Err(bad("an unknown request")),
    }
}

fn read_request(socket: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut size = [0; 8];
    socket.read_exact(&mut size)?;
    let mut request = vec![0; u64::from_le_bytes(size) as usize];
    socket.read_exact(&mut request)?;
    Ok(request)
}

fn write_reply(mut socket: &File, reply: Result<Vec<u8>, Failure>) -> io::Result<()> {
    let (status, body) = match reply {
        Ok(body) => (0, body),
        Err(Failure::Bad(message)) => (1, plain(&message).into_bytes()),
        Err(Failure::Raised(message)) => (2, message.into_bytes()),
    };
    socket.write_all(&frame(status, &body))
}

fn frame(status: u8, body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(body.len() + 9);
    frame.extend((body.len() as u64 + 1).to_le_bytes());
    frame.push(status);
    frame.extend(body);
    frame
}

/// In place of the reply to the request that is being worked on: why a library gave up.
pub fn reply_panic(reason: &str) {
    // SAFETY: the process ends before anything could be closed twice.
    let socket = ManuallyDrop::new(unsafe { File::from_raw_fd(libc::STDIN_FILENO) });
    let line = plain(reason.lines().next().unwrap_or_default());
    let most = line.char_indices().nth(200).map_or(line.len(), |(end, _)| end);
    // Without a reply the exit status says as much, but for the reason.
    let _ = (&*socket).write_all(&frame(3, line[..most].as_bytes()));
}

/// Until the other end is gone.
pub fn serve(socket: File) {
    let mut service = Service::None;
    let mut reader = BufReader::new(&socket);
    while let Ok(request) = read_request(&mut reader) {
        let reply = service.reply(&mut Fields(&request));
        if write_reply(&socket, reply).is_err() {
            return;
        }
    }
}
