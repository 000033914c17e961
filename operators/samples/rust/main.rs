//! Counts what has come, and says how much that is with every event.
mod servioticy;

fn main() {
    servioticy::serve(|question| {
        let mut count = question.at("state").at("count").number();
        let outputs: Vec<String> = (0..question.at("events").items().len())
            .map(|event| {
                count += 1.0;
                format!("{{\"event\":{event},\"channels\":{{\"count\":{count}}}}}")
            })
            .collect();
        let id = question.at("id").text();
        format!("{{\"id\":\"{id}\",\"outputs\":[{}],\"state\":{{\"count\":{count}}}}}", outputs.join(","))
    })
}
